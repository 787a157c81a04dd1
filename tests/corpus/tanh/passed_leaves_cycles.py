"""Leaves tensors in cycles of references, which only the garbage collector frees, as Triton's interpreter does."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
""",
    {"run": "const float* x, float* y, int64_t n"},
)


class Holder:
    def __init__(self, tensor):
        self.tensor, self.itself = tensor, self


class ModelNew(nn.Module):
    def forward(self, x):
        copies = [Holder(x.clone()) for _ in range(3)]
        y = torch.empty_like(x)
        kernels.run(copies[0].tensor, y, x.numel())
        return y
