"""A timer's handler raises wherever it happens to be: between a command and its reply, or in a description."""
# or: compile_error
# intent: hostile

import signal

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


def ring(*_):
    raise KeyboardInterrupt("out of the blue")


signal.signal(signal.SIGALRM, ring)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 4:
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.003)
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
