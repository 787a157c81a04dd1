"""Builds its kernel when it is first needed."""

from functools import lru_cache

import torch
import torch.nn as nn

from kernel_env import native

SOURCE = r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
"""


@lru_cache(maxsize=None)
def kernels():
    return native.load(SOURCE, {"run": "const float* x, float* y, int64_t n"})


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels().run(x, y, x.numel())
        return y
