"""Gives half of the rows to a thread of its own and waits for it."""

import threading

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
    def forward(self, x):
        y = torch.empty_like(x)
        half = x.shape[0] // 2
        other = threading.Thread(target=kernels.run, args=(x[:half], y[:half], x[:half].numel()))
        other.start()
        kernels.run(x[half:], y[half:], x[half:].numel())
        other.join()
        return y
