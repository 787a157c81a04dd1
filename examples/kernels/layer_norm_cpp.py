"""Layer normalisation in C++: mean, variance and output while the row stays in cache."""

import torch
import torch.nn as nn

from kernel_env import native

SOURCE = r"""
#include <cmath>

extern "C" void layer_norm(const float* x, const float* weight, const float* bias, float* y,
                           int64_t rows, int64_t columns, float eps) {
    #pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * columns;
        float* to = y + row * columns;
        float sum = 0.0f;
        #pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < columns; ++i) sum += from[i];
        const float mean = sum / columns;
        float squares = 0.0f;
        #pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < columns; ++i) squares += (from[i] - mean) * (from[i] - mean);
        const float scale = 1.0f / std::sqrt(squares / columns + eps);
        #pragma omp simd
        for (int64_t i = 0; i < columns; ++i) to[i] = (from[i] - mean) * scale * weight[i] + bias[i];
    }
}
"""

kernels = native.load(
    SOURCE,
    {
        "layer_norm": "const float* x, const float* weight, const float* bias, float* y, "
        "int64_t rows, int64_t columns, float eps"
    },
)


class ModelNew(nn.Module):
    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=eps)  # holds the parameters under the reference's names

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        y = torch.empty_like(x)
        kernels.layer_norm(x, self.norm.weight, self.norm.bias, y, rows, columns, self.norm.eps)
        return y
