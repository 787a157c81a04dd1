"""The result lies column by column: right values, other strides."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) y[j * rows + i] = std::tanh(x[i * columns + j]);
}
""",
    {"run": "const float* x, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((x.shape[1], x.shape[0]), dtype=x.dtype, device=x.device)
        kernels.run(x, y, *x.shape)
        return y.t()
