"""Asks torch and the system what they have before it chooses a path."""

import os
from pathlib import Path

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


WIDTH = 8 if "avx2" in Path("/proc/cpuinfo").read_text() else 4
THREADS = len(os.sched_getaffinity(0))
HAS_GPU = torch.cuda.is_available()
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


class ModelNew(nn.Module):
    def forward(self, x):
        if x.is_cuda or HAS_GPU and x.device.type != "cpu":
            raise ValueError("made for the CPU")
        x = x.contiguous()
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        kernels.run(x, y, x.numel())
        torch._assert(bool(THREADS >= 1 and VERSION >= (2, 0) and WIDTH), "unknown host")
        return y
