"""Holds the parameters in a list."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void run(const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) y[i * columns + j] = x[i * columns + j] * w[j] + b[j];
}
""",
    {"run": "const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.held = nn.ParameterList([nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))])

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, self.held[0], self.held[1], y, *x.shape)
        return y
