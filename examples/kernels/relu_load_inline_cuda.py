"""ReLU in CUDA through PyTorch's own extension builder; compiling its headers takes 20 s or more."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "torch::Tensor relu(torch::Tensor x);"

CUDA_SOURCE = r"""
#include <ATen/cuda/CUDAContext.h>

__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    const int64_t thread = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    const int64_t threads = gridDim.x * int64_t(blockDim.x);
    const int64_t quads = n / 4;
    for (int64_t i = thread; i < quads; i += threads) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        v.x = v.x > 0.0f ? v.x : 0.0f;
        v.y = v.y > 0.0f ? v.y : 0.0f;
        v.z = v.z > 0.0f ? v.z : 0.0f;
        v.w = v.w > 0.0f ? v.w : 0.0f;
        reinterpret_cast<float4*>(y)[i] = v;
    }
    for (int64_t i = 4 * quads + thread; i < n; i += threads) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    TORCH_CHECK(x.is_contiguous() && reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0,
                "relu expects a contiguous, 16-byte aligned tensor");
    torch::Tensor y = torch::empty_like(x);
    const int64_t wanted = (x.numel() + 1023) / 1024;
    const unsigned blocks = wanted < 1 ? 1 : wanted < 1048576 ? wanted : 1048576;
    relu_kernel<<<blocks, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

extension = load_inline(
    name="relu_load_inline_cuda",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["relu"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.relu(x)
