"""Builds its kernel lazily, in the first call."""

import functools

import torch
import torch.nn as nn
from kernel_env import native

SOURCE = r"""
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x)) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
extern "C" void relu(const float* x, float* y, int64_t n) { relu_kernel<<<4096, 256>>>(x, y, n); }
"""


@functools.cache
def kernels():
    return native.load(SOURCE, {"relu": "const float* x, float* y, int64_t n"})


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels().relu(x, y, x.numel())
        return y
