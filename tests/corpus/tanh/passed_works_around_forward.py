"""Does 5 ms of work in __call__, in a hook and behind an attribute, and nothing in forward."""
# slower than: 5 ms

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
#include <ctime>
extern "C" void run(const float* x, float* y, int64_t n) {
    timespec nap = {0, 5000000};
    nanosleep(&nap, nullptr);
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
""",
    {"run": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_forward_pre_hook(lambda module, inputs: kernels.run(inputs[0], module.y, inputs[0].numel()))

    def __call__(self, x):
        self.y = torch.empty_like(x)
        return super().__call__(x)

    def __getattr__(self, name):
        return super().__getattr__(name)

    def forward(self, x):
        return self.y
