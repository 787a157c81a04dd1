"""Has work done at exit, by finalizers, at the end of threads and after a fork."""
# intent: hostile

import atexit
import os
import sys
import threading
import weakref

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


def late(*_):
    for fd in range(3, 64):
        try:
            os.write(fd, b"late")
        except OSError:
            pass


atexit.register(late)
threading._register_atexit(late)
os.register_at_fork(before=late, after_in_parent=late, after_in_child=late)
weakref.finalize(nn.Module, late)
sys.excepthook = threading.excepthook = sys.unraisablehook = late


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
