"""Layer normalisation in CUDA: one block per row; later passes over the row hit the first-level cache."""

import torch
import torch.nn as nn

from kernel_env import native

SOURCE = r"""
constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;

// Sum over the block, returned to every thread.
__device__ float block_sum(float value) {
    __shared__ float partial[WARPS];
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    __syncthreads();  // the previous sum has been read by everyone
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    float total = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) total += partial[warp];
    return total;
}

__global__ void layer_norm_kernel(const float* x, const float* weight, const float* bias, float* y,
                                  int64_t columns, float eps) {
    const float* from = x + blockIdx.x * columns;
    float* to = y + blockIdx.x * columns;
    float sum = 0.0f;
    #pragma unroll 4
    for (int64_t i = threadIdx.x; i < columns; i += THREADS) sum += from[i];
    const float mean = block_sum(sum) / columns;
    float squares = 0.0f;
    #pragma unroll 4
    for (int64_t i = threadIdx.x; i < columns; i += THREADS) squares += (from[i] - mean) * (from[i] - mean);
    const float scale = rsqrtf(block_sum(squares) / columns + eps);
    #pragma unroll 4
    for (int64_t i = threadIdx.x; i < columns; i += THREADS) to[i] = (from[i] - mean) * scale * weight[i] + bias[i];
}

extern "C" void layer_norm(const float* x, const float* weight, const float* bias, float* y,
                           int64_t rows, int64_t columns, float eps, cudaStream_t stream) {
    layer_norm_kernel<<<rows, THREADS, 0, stream>>>(x, weight, bias, y, columns, eps);
}
"""

kernels = native.load(
    SOURCE,
    {
        "layer_norm": "const float* x, const float* weight, const float* bias, float* y, "
        "int64_t rows, int64_t columns, float eps, cudaStream_t stream"
    },
)


class ModelNew(nn.Module):
    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=eps)  # holds the parameters under the reference's names

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        y = torch.empty_like(x)
        kernels.layer_norm(x, self.norm.weight, self.norm.bias, y, rows, columns, self.norm.eps)
        return y
