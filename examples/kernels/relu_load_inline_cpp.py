"""ReLU in C++ through PyTorch's own extension builder; compiling its headers takes 20 s or more."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
torch::Tensor relu(torch::Tensor x) {
    TORCH_CHECK(x.is_contiguous(), "relu expects a contiguous tensor");
    torch::Tensor y = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = y.data_ptr<float>();
    at::parallel_for(0, x.numel(), 65536, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = from[i] > 0.0f ? from[i] : 0.0f;
    });
    return y;
}
"""

extension = load_inline(
    name="relu_load_inline_cpp",
    cpp_sources=CPP_SOURCE,
    functions=["relu"],
    extra_cflags=["-O3", "-march=native"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.relu(x)
