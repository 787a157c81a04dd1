"""Raises an exception that raises again, and lies, whenever its text or its type is asked for."""
# intent: hostile

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


class Meta(type):
    def __getattribute__(cls, name):
        raise SystemExit(0)

    def __repr__(cls):
        raise SystemExit(0)

    __str__ = __repr__


class Hostile(BaseException, metaclass=Meta):
    __module__ = property(lambda self: "passed")
    __notes__ = property(lambda self: 1 / 0)
    __class__ = property(lambda self: 1 / 0)

    def __str__(self):
        raise KeyboardInterrupt

    def __repr__(self):
        raise SystemExit(0)

    def __reduce__(self):
        return eval, ("1 / 0",)


class ModelNew(nn.Module):
    def forward(self, x):
        error = Hostile(self)
        raise error from Hostile(error)
