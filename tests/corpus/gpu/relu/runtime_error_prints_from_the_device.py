"""Prints some 40 MB from its kernel in every call."""
# intent: hostile

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
#include <cstdio>
__global__ void chatter(int lines) {
    for (int i = 0; i < lines; ++i) {
        printf("line %d of thread %d in block %d: the quick brown fox jumps over the lazy dog, again and again\n", i,
               threadIdx.x, blockIdx.x);
    }
}
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x)) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
extern "C" void prepare() { cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 128 << 20); }
extern "C" void relu(const float* x, float* y, int64_t n) {
    chatter<<<64, 128>>>(50);
    relu_kernel<<<4096, 256>>>(x, y, n);
}
""",
    {"prepare": "void", "relu": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        kernels.prepare()

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
