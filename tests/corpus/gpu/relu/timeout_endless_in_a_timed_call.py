"""Counts its launches on the device, and does not end from the sixtieth on."""

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
__device__ volatile int launches;
__global__ void count() {
    launches = launches + 1;
    while (launches >= 60) {
    }
}
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x)) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
extern "C" void relu(const float* x, float* y, int64_t n) {
    count<<<1, 1>>>();
    relu_kernel<<<4096, 256>>>(x, y, n);
}
""",
    {"relu": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
