"""Asks the driver for a larger stack and heap before it works."""

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x)) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
extern "C" void relu(const float* x, float* y, int64_t n) { relu_kernel<<<4096, 256>>>(x, y, n); }
extern "C" void limits() {
    cudaDeviceSetLimit(cudaLimitStackSize, 8 << 10);
    cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20);
    cudaGetLastError();
}
""",
    {"relu": "const float* x, float* y, int64_t n", "limits": "void"},
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        kernels.limits()

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
