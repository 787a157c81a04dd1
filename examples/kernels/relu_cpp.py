"""ReLU in C++: one vectorised pass, split over the threads."""

import torch
import torch.nn as nn

from kernel_env import native

SOURCE = r"""
extern "C" void relu(const float* x, float* y, int64_t n) {
    #pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
"""

kernels = native.load(
    SOURCE,
    {"relu": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
