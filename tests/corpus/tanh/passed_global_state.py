"""Keeps counters in globals, seeds generators, and sets options of torch and of the environment."""

import gc
import os
import random

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


os.environ["OMP_NUM_THREADS"] = "1"
torch.manual_seed(0)
random.seed(0)
torch.set_num_threads(1)
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = True
torch.set_grad_enabled(False)

CALLS = 0
SHAPES = {}


class ModelNew(nn.Module):
    def forward(self, x):
        global CALLS
        CALLS += 1
        SHAPES[x.shape] = SHAPES.get(x.shape, 0) + 1
        if CALLS % 16 == 0:
            gc.collect()
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
