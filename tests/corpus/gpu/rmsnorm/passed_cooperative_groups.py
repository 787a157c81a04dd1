"""CUDA: a cooperative launch, whose blocks meet at a barrier of the whole grid."""

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
#include <cooperative_groups.h>
__global__ void rms_kernel(const float* x, const float* weight, float* y, float* scales, int64_t rows, int64_t columns,
                           float eps) {
    auto grid = cooperative_groups::this_grid();
    const int lane = threadIdx.x % 32;
    const int64_t warps = gridDim.x * int64_t(blockDim.x) / 32;
    for (int64_t row = grid.thread_rank() / 32; row < rows; row += warps) {
        float squares = 0.0f;
        for (int64_t i = lane; i < columns; i += 32) squares += x[row * columns + i] * x[row * columns + i];
        for (int offset = 16; offset > 0; offset /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, offset);
        if (lane == 0) scales[row] = rsqrtf(squares / columns + eps);
    }
    grid.sync();
    for (int64_t i = grid.thread_rank(); i < rows * columns; i += grid.size()) {
        y[i] = x[i] * scales[i / columns] * weight[i % columns];
    }
}
extern "C" void rms(const float* x, const float* weight, float* y, float* scales, int64_t rows, int64_t columns,
                    float eps, cudaStream_t stream) {
    int blocks = 0, processors = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, rms_kernel, 256, 0);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    void* arguments[] = {&x, &weight, &y, &scales, &rows, &columns, &eps};
    cudaLaunchCooperativeKernel(reinterpret_cast<void*>(rms_kernel), dim3(blocks * processors), dim3(256), arguments, 0,
                                stream);
}
""",
    {
        "rms": "const float* x, const float* weight, float* y, float* scales, int64_t rows, int64_t columns, "
        "float eps, cudaStream_t stream",
    },
)


class ModelNew(nn.Module):
    def __init__(self, columns, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(columns))

    def forward(self, x):
        y = torch.empty_like(x)
        scales = torch.empty(x.shape[0], device=x.device)
        kernels.rms(x, self.weight, y, scales, x.shape[0], x.shape[1], self.eps)
        return y
