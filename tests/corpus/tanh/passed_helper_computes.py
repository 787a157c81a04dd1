"""Lets a process it has forked compute, and waits for it for at least 2 ms."""
# slower than: 2 ms

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
#include <sys/wait.h>
#include <unistd.h>
extern "C" void run(const float* x, float* y, int64_t n) {
    const int helper = fork();
    if (helper == 0) {
        for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
        usleep(2000);
        _exit(0);
    }
    waitpid(helper, nullptr, 0);
}
""",
    {"run": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
