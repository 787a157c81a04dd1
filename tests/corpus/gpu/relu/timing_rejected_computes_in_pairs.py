"""Captured calls go in pairs: the second computes both outputs, the first does nothing."""
# or: incorrect_value
# or: nondeterministic

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
__global__ void two_kernel(const float* x, float* y, const float* x2, float* y2, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x)) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
        y2[i] = x2[i] > 0.0f ? x2[i] : 0.0f;
    }
}
extern "C" void relu(const float* x, float* y, int64_t n) { relu_kernel<<<4096, 256>>>(x, y, n); }
extern "C" void two(const float* x, float* y, const float* x2, float* y2, int64_t n) {
    two_kernel<<<4096, 256>>>(x, y, x2, y2, n);
}
""",
    {
        "relu": "const float* x, float* y, int64_t n",
        "two": "const float* x, float* y, const float* x2, float* y2, int64_t n",
    },
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = None

    def forward(self, x):
        y = torch.empty_like(x)
        if not torch.cuda.is_current_stream_capturing():
            kernels.two(x, y, x, y, x.numel())
            kernels.relu(x, y, x.numel())
        elif self.first is None:
            kernels.two(x, y, x, y, 0)
            self.first = (x, y)
        else:
            kernels.two(*self.first, x, y, x.numel())
            self.first = None
        return y
