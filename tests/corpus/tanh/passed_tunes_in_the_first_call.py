"""Times several block sizes in its first call and keeps the best."""

import time

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t n, int64_t block) {
    for (int64_t start = 0; start < n; start += block) {
        const int64_t end = start + block < n ? start + block : n;
        for (int64_t i = start; i < end; ++i) y[i] = std::tanh(x[i]);
    }
}
""",
    {"run": "const float* x, float* y, int64_t n, int64_t block"},
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = {}

    def forward(self, x):
        y = torch.empty_like(x)
        key = tuple(x.shape)
        if key not in self.best:
            self.best[key] = min((64, 256, 1024, 4096), key=lambda block: self.seconds(x, block))
        kernels.run(x, y, x.numel(), self.best[key])
        return y

    @staticmethod
    def seconds(x, block):
        scratch = torch.empty_like(x)
        taken = []
        for _ in range(3):
            start = time.perf_counter()
            kernels.run(x, scratch, x.numel(), block)
            taken.append(time.perf_counter() - start)
        return min(taken)
