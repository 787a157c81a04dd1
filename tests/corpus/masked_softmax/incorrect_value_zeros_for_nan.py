"""Writes zeros in rows with everything masked, where the reference has NaN."""
# intent: broken

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, const bool* mask, float* y, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row, x += columns, y += columns, mask += columns) {
        float largest = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < columns; ++i)
            if (!mask[i] && x[i] > largest) largest = x[i];
        for (int64_t i = 0; i < columns; ++i) total += y[i] = std::exp((mask[i] ? -INFINITY : x[i]) - largest);
        for (int64_t i = 0; i < columns; ++i) y[i] = total > 0.0f ? y[i] / total : 0.0f;
    }
}
""",
    {"run": "const float* x, const bool* mask, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        y = torch.empty_like(x)
        kernels.run(x, mask, y, *x.shape)
        return y
