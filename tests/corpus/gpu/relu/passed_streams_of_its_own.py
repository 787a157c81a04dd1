"""Forks the work onto two streams and joins them by events, in C++."""

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
static cudaStream_t sides[2];
static cudaEvent_t forked, joined[2];
extern "C" void begin() {
    cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
    for (int i = 0; i < 2; ++i) {
        cudaStreamCreateWithFlags(&sides[i], cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&joined[i], cudaEventDisableTiming);
    }
}
extern "C" void relu(const float* x, float* y, int64_t n, cudaStream_t stream) {
    const int64_t half = n / 2;
    cudaEventRecord(forked, stream);
    for (int i = 0; i < 2; ++i) {
        cudaStreamWaitEvent(sides[i], forked, 0);
        relu_kernel<<<2048, 256, 0, sides[i]>>>(x + i * half, y + i * half, i == 0 ? half : n - half);
        cudaEventRecord(joined[i], sides[i]);
        cudaStreamWaitEvent(stream, joined[i], 0);
    }
}
""",
    {"begin": "void", "relu": "const float* x, float* y, int64_t n, cudaStream_t stream"},
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        kernels.begin()

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
