"""Expands the parameters to the shape of the input, as glue."""

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
        self.weight = nn.Parameter(torch.ones(features), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(features), requires_grad=False)

    def forward(self, x):
        weight = self.weight.unsqueeze(0).expand_as(x).contiguous()
        bias = self.bias.repeat(x.shape[0], 1)
        y = torch.zeros_like(x)
        kernels.run(x.view(1, -1), weight.view(-1), bias.view(-1), y, 1, x.numel())
        return y
