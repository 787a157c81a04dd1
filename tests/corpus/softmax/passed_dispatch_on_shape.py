"""A kernel for exactly 1024 columns, and a general one for every other shape."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
template <int64_t Fixed>
static void softmax(const float* x, float* y, int64_t rows, int64_t given) {
    const int64_t columns = Fixed ? Fixed : given;
    for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
        float largest = x[0], total = 0.0f;
        for (int64_t i = 1; i < columns; ++i) largest = x[i] > largest ? x[i] : largest;
        for (int64_t i = 0; i < columns; ++i) total += y[i] = std::exp(x[i] - largest);
        const float factor = 1.0f / total;
        for (int64_t i = 0; i < columns; ++i) y[i] *= factor;
    }
}
extern "C" void run_1024(const float* x, float* y, int64_t rows, int64_t columns) {
    softmax<1024>(x, y, rows, columns);
}
extern "C" void run_any(const float* x, float* y, int64_t rows, int64_t columns) { softmax<0>(x, y, rows, columns); }
""",
    {
        "run_1024": "const float* x, float* y, int64_t rows, int64_t columns",
        "run_any": "const float* x, float* y, int64_t rows, int64_t columns",
    },
)


DISPATCH = {1024: kernels.run_1024}


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        DISPATCH.get(x.shape[-1], kernels.run_any)(x, y, *x.shape)
        return y
