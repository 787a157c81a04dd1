"""Stops the device with a trap when a value is large, which is so on some inputs only."""
# or: compile_error

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    if (x[i] > 30.0f) __trap();
    y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
extern "C" void relu(const float* x, float* y, int64_t n) { relu_kernel<<<(n + 255) / 256, 256>>>(x, y, n); }
""",
    {"relu": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
