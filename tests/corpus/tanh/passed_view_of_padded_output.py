"""The result is a view of a larger allocation of the same call, with padded rows."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
""",
    {"run": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        padded = x.new_empty((rows + 1, columns + 16))
        for row in range(rows):
            kernels.run(x[row], padded[row + 1, 16:], columns)
        return padded[1:, 16:]
