"""Keeps a pool of threads between calls; every call waits for its own work."""

from concurrent.futures import ThreadPoolExecutor

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


pool = ThreadPoolExecutor(max_workers=2)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        parts = zip(x.chunk(4), y.chunk(4))
        waiting = [pool.submit(kernels.run, given, made, given.numel()) for given, made in parts]
        for future in waiting:
            future.result()
        return y
