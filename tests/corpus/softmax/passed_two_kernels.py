"""One kernel for the statistics, one that scales its own result in place."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void exponentials(const float* x, float* y, float* totals, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * columns;
        float largest = from[0];
        for (int64_t i = 1; i < columns; ++i) largest = std::fmax(largest, from[i]);
        for (int64_t i = 0; i < columns; ++i) totals[row] += y[row * columns + i] = std::exp(from[i] - largest);
    }
}
extern "C" void scale(float* y, const float* totals, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows * columns; ++i) y[i] /= totals[i / columns];
}
""",
    {
        "exponentials": "const float* x, float* y, float* totals, int64_t rows, int64_t columns",
        "scale": "float* y, const float* totals, int64_t rows, int64_t columns",
    },
)


class ModelNew(nn.Module):
    def forward(self, x):
        totals = torch.zeros(x.shape[0], dtype=torch.float32)
        y = torch.empty_like(x)
        kernels.exponentials(x, y, totals, *x.shape)
        kernels.scale(y, totals, *x.shape)
        return y
