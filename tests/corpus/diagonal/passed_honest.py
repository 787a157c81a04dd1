"""Scales rows, where the reference multiplies by a matrix of zeros: far faster, and right."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void run(const float* a, const float* b, float* c, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) c[i * columns + j] = a[i] * b[i * columns + j];
}
""",
    {"run": "const float* a, const float* b, float* c, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty_like(b)
        kernels.run(a, b, c, *b.shape)
        return c
