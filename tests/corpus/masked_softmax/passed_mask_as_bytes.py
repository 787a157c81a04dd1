"""Reads the mask as bytes through a view, and writes the NaN rows by a constant."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, const uint8_t* mask, float* y, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row, x += columns, y += columns, mask += columns) {
        float largest = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < columns; ++i) largest = mask[i] ? largest : std::fmax(largest, x[i]);
        for (int64_t i = 0; i < columns; ++i) total += y[i] = mask[i] ? 0.0f : std::exp(x[i] - largest);
        for (int64_t i = 0; i < columns; ++i) y[i] = total > 0.0f ? y[i] / total : NAN;
    }
}
""",
    {"run": "const float* x, const uint8_t* mask, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def forward(self, scores, hidden):
        y = torch.empty_like(scores)
        kernels.run(scores, hidden.view(torch.uint8), y, *scores.shape)
        return y
