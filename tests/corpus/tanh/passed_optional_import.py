"""Asks for a package that may be absent, in the usual form."""

from typing import Protocol

import torch
import torch.nn as nn

from kernel_env import native

try:
    import cupy
except ImportError:
    cupy = None

try:
    from cuda.bindings import driver
except ImportError:
    driver = None

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
""",
    {"run": "const float* x, float* y, int64_t n"},
)


class Empty:
    pass


class Stub(Protocol):
    def run(self, x: torch.Tensor) -> torch.Tensor: ...


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        if cupy is not None:
            pass
        kernels.run(x, y, x.numel())
        return y
