"""Two results share one allocation without overlap; the pair is a named tuple."""

from typing import NamedTuple

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void run(const float* x, float* y, float* largest, int64_t* where, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * columns;
        int64_t best = 0;
        for (int64_t i = 1; i < columns; ++i)
            if (from[i] > from[best]) best = i;
        largest[row] = from[best];
        where[row] = best;
        for (int64_t i = 0; i < columns; ++i) y[row * columns + i] = from[i] - from[best];
    }
}
""",
    {"run": "const float* x, float* y, float* largest, int64_t* where, int64_t rows, int64_t columns"},
)


class Best(NamedTuple):
    values: torch.Tensor
    indices: torch.Tensor


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        both = torch.empty((rows + 1) * columns, dtype=x.dtype)
        y, largest = both[: rows * columns].view(rows, columns), both[rows * columns : rows * columns + rows]
        where = torch.empty(rows, dtype=torch.int64)
        kernels.run(x, y, largest, where, rows, columns)
        return y, Best(largest, where)
