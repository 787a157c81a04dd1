"""Needs two seconds in its first call, as a large template library does."""

import time

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
        self.is_ready = False

    def forward(self, x):
        if not self.is_ready:
            time.sleep(2.0)
            self.is_ready = True
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
