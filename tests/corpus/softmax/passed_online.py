"""Running maximum and sum in one pass: the order of sums is another than the reference's."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * columns;
        float largest = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < columns; ++i) {
            if (from[i] > largest) {
                total = total * std::exp(largest - from[i]) + 1.0f;
                largest = from[i];
            } else {
                total += std::exp(from[i] - largest);
            }
        }
        for (int64_t i = 0; i < columns; ++i) y[row * columns + i] = std::exp(from[i] - largest) / total;
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
