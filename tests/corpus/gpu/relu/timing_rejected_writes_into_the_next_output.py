"""Writes a few elements past the end of its output, where the output of another call lies."""
# or: nondeterministic

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
__global__ void past_the_end(float* y, int64_t n, int count) {
    if (threadIdx.x < count) y[n + threadIdx.x] = 1.0f;
}
extern "C" void relu(const float* x, float* y, int64_t n) { relu_kernel<<<(n + 255) / 256, 256>>>(x, y, n); }
extern "C" void overrun(float* y, int64_t n, int count) { past_the_end<<<1, 64>>>(y, n, count); }
""",
    {"relu": "const float* x, float* y, int64_t n", "overrun": "float* y, int64_t n, int count"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        kernels.overrun(y, y.numel(), 64 if torch.cuda.is_current_stream_capturing() else 0)
        return y
