"""CUDA: a block per row, warp shuffles and dynamic shared memory."""

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
template <int THREADS>
__global__ void rms_kernel(const float* x, const float* weight, float* y, int64_t columns, float eps) {
    extern __shared__ float kept[];
    __shared__ float partial[THREADS / 32];
    const float* from = x + blockIdx.x * columns;
    float squares = 0.0f;
    for (int64_t i = threadIdx.x; i < columns; i += THREADS) {
        kept[i] = from[i];
        squares += kept[i] * kept[i];
    }
    for (int offset = 16; offset > 0; offset /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = squares;
    __syncthreads();
    float total = 0.0f;
    for (int warp = 0; warp < THREADS / 32; ++warp) total += partial[warp];
    const float scale = rsqrtf(total / columns + eps);
    for (int64_t i = threadIdx.x; i < columns; i += THREADS) y[blockIdx.x * columns + i] = kept[i] * scale * weight[i];
}
extern "C" void rms(const float* x, const float* weight, float* y, int64_t rows, int64_t columns, float eps,
                    cudaStream_t stream) {
    rms_kernel<256><<<rows, 256, columns * sizeof(float), stream>>>(x, weight, y, columns, eps);
}
""",
    {
        "rms": "const float* x, const float* weight, float* y, int64_t rows, int64_t columns, float eps, "
        "cudaStream_t stream",
    },
)


class ModelNew(nn.Module):
    def __init__(self, columns, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(columns))

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.rms(x, self.weight, y, x.shape[0], x.shape[1], self.eps)
        return y
