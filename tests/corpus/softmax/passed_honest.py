"""One kernel, three passes over a row."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * columns;
        float* to = y + row * columns;
        float largest = from[0], total = 0.0f;
        for (int64_t i = 1; i < columns; ++i) largest = std::fmax(largest, from[i]);
        for (int64_t i = 0; i < columns; ++i) total += to[i] = std::exp(from[i] - largest);
        for (int64_t i = 0; i < columns; ++i) to[i] /= total;
    }
}
""",
    {"run": "const float* x, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, y, *x.shape)
        return y
