"""Sum over the middle dimension in CUDA: eight warps share the rows of 32 columns and add up in shared memory."""

import torch
import torch.nn as nn

from kernel_env import native

SOURCE = r"""
constexpr int WARPS = 8;

__global__ void sum_reduce_kernel(const float* x, float* y, int64_t rows, int64_t columns) {
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int64_t column = blockIdx.x * 32ll + lane;
    const float* from = x + blockIdx.y * rows * columns + column;
    float sum = 0.0f;
    if (column < columns) {
        #pragma unroll 8
        for (int64_t row = warp; row < rows; row += WARPS) sum += __ldcs(from + row * columns);
    }
    __shared__ float partial[WARPS][32];
    partial[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < columns) {
        for (int other = 1; other < WARPS; ++other) sum += partial[other][lane];
        y[blockIdx.y * columns + column] = sum;
    }
}

extern "C" void sum_reduce(const float* x, float* y, int64_t batch, int64_t rows, int64_t columns,
                           cudaStream_t stream) {
    const dim3 grid((columns + 31) / 32, batch);
    sum_reduce_kernel<<<grid, dim3(32, WARPS), 0, stream>>>(x, y, rows, columns);
}
"""

kernels = native.load(
    SOURCE,
    {"sum_reduce": "const float* x, float* y, int64_t batch, int64_t rows, int64_t columns, cudaStream_t stream"},
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, columns = x.shape
        y = torch.empty((batch, 1, columns), dtype=x.dtype, device=x.device)
        kernels.sum_reduce(x, y, batch, rows, columns)
        return y
