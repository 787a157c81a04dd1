"""A host function in the stream starts a thread, which launches the kernel when the call is over."""
# or: timing_rejected

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
#include <chrono>
#include <thread>
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x)) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
struct Work {
    const float* x;
    float* y;
    int64_t n;
};
static void wake(void* argument) {
    Work work = *static_cast<Work*>(argument);
    std::thread([work] {
        std::this_thread::sleep_for(std::chrono::microseconds(400));
        relu_kernel<<<4096, 256>>>(work.x, work.y, work.n);
    }).detach();
}
extern "C" void relu(const float* x, float* y, int64_t n, cudaStream_t stream) {
    cudaLaunchHostFunc(stream, wake, new Work{x, y, n});
}
""",
    {"relu": "const float* x, float* y, int64_t n, cudaStream_t stream"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
