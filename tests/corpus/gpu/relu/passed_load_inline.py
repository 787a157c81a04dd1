"""Through PyTorch's own extension builder, on PyTorch's current stream."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

extension = load_inline(
    name="relu_of_a_submission",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources=r"""
#include <ATen/cuda/CUDAContext.h>
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x)) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
torch::Tensor relu(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "a contiguous CUDA tensor is expected");
    torch::Tensor y = torch::empty_like(x);
    auto stream = at::cuda::getCurrentCUDAStream();
    relu_kernel<<<4096, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
