"""Templates, 16-byte accesses and a tail."""

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
template <typename Vector, int COUNT>
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    const int64_t threads = gridDim.x * int64_t(blockDim.x);
    const int64_t thread = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    for (int64_t i = thread; i < n / COUNT; i += threads) {
        Vector v = reinterpret_cast<const Vector*>(x)[i];
        float* parts = reinterpret_cast<float*>(&v);
        #pragma unroll
        for (int k = 0; k < COUNT; ++k) parts[k] = fmaxf(parts[k], 0.0f);
        reinterpret_cast<Vector*>(y)[i] = v;
    }
    for (int64_t i = n / COUNT * COUNT + thread; i < n; i += threads) y[i] = fmaxf(x[i], 0.0f);
}
extern "C" void relu(const float* x, float* y, int64_t n, cudaStream_t stream) {
    relu_kernel<float4, 4><<<2048, 256, 0, stream>>>(x, y, n);
}
""",
    {"relu": "const float* x, float* y, int64_t n, cudaStream_t stream"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
