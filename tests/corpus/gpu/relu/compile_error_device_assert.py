"""An assertion in the kernel does not hold."""

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
#include <cassert>
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    assert(n < 0);
    if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];
}
extern "C" void relu(const float* x, float* y, int64_t n) { relu_kernel<<<1, 32>>>(x, y, n); }
""",
    {"relu": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
