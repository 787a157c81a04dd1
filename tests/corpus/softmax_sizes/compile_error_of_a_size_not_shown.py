"""Refuses every shape but the one that is shown, as a kernel written for it may."""
# says: At size 2 of 2
# says: only 1024 columns

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
        float largest = x[0], total = 0.0f;
        for (int64_t i = 1; i < columns; ++i) largest = x[i] > largest ? x[i] : largest;
        for (int64_t i = 0; i < columns; ++i) total += y[i] = std::exp(x[i] - largest);
        const float factor = 1.0f / total;
        for (int64_t i = 0; i < columns; ++i) y[i] *= factor;
    }
}
""",
    {"run": "const float* x, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape[1] != 1024:
            raise ValueError("only 1024 columns")
        y = torch.empty_like(x)
        kernels.run(x, y, *x.shape)
        return y
