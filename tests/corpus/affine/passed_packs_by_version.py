"""Packs both parameters into one tensor, and again whenever one has changed."""

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
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.packed, self.key = None, None

    def forward(self, x):
        key = (self.weight._version, self.bias._version, self.weight.data_ptr(), self.bias.data_ptr())
        if key != self.key:
            self.packed, self.key = torch.stack([self.weight.detach(), self.bias.detach()]), key
        y = torch.empty_like(x)
        kernels.run(x, self.packed[0], self.packed[1], y, *x.shape)
        return y
