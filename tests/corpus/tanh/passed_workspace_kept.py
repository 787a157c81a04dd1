"""Computes in memory kept between calls and copies into a new result."""

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


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspace = None

    def forward(self, x):
        if self.workspace is None or self.workspace.shape != x.shape:
            self.workspace = torch.empty_like(x)
        kernels.run(x, self.workspace, x.numel())
        return self.workspace.clone()
