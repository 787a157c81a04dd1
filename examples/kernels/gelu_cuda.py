"""GELU (tanh form) in CUDA: one pass with 16-byte streaming accesses."""

import torch
import torch.nn as nn

from kernel_env import native

SOURCE = r"""
__device__ float gelu_of(float x) {
    const float u = 0.79788456f * (x + 0.044715f * x * x * x);
    return x / (1.0f + __expf(-2.0f * u));
}

// 16 bytes per thread and access; the last elements, and tensors that are not 16-byte aligned, go one by one.
__global__ void gelu_kernel(const float* x, float* y, int64_t n, int64_t quads) {
    const int64_t thread = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    const int64_t threads = gridDim.x * int64_t(blockDim.x);
    #pragma unroll 4
    for (int64_t i = thread; i < quads; i += threads) {
        float4 v = __ldcs(reinterpret_cast<const float4*>(x) + i);
        v.x = gelu_of(v.x);
        v.y = gelu_of(v.y);
        v.z = gelu_of(v.z);
        v.w = gelu_of(v.w);
        __stcs(reinterpret_cast<float4*>(y) + i, v);
    }
    for (int64_t i = 4 * quads + thread; i < n; i += threads) y[i] = gelu_of(x[i]);
}

extern "C" void gelu(const float* x, float* y, int64_t n, cudaStream_t stream) {
    const bool aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0;
    const int64_t quads = aligned ? n / 4 : 0;
    const int64_t wanted = ((aligned ? quads : n) + 1023) / 1024;
    const unsigned blocks = wanted < 1 ? 1 : wanted < 1048576 ? wanted : 1048576;
    gelu_kernel<<<blocks, 256, 0, stream>>>(x, y, n, quads);
}
"""

kernels = native.load(
    SOURCE,
    {"gelu": "const float* x, float* y, int64_t n, cudaStream_t stream"},
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        kernels.gelu(x, y, x.numel())
        return y
