"""A thread of the library computes after the call has returned."""
# or: incorrect_value
# or: runtime_error

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
#include <thread>
#include <unistd.h>
extern "C" void run(const float* x, float* y, int64_t n) {
    std::thread([=] {
        usleep(1000);
        for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
    }).detach();
}
""",
    {"run": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
