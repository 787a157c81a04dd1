"""Integer inputs; nn.Embedding only holds the table."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cstring>
extern "C" void run(const int64_t* index, const float* table, float* y, int64_t count, int64_t width) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(y + i * width, table + index[i] * width, width * sizeof(float));
}
""",
    {"run": "const int64_t* index, const float* table, float* y, int64_t count, int64_t width"},
)


class ModelNew(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.table = nn.Embedding(count, width)

    def forward(self, index):
        table = self.table.weight
        y = torch.empty((*index.shape, table.shape[1]), dtype=table.dtype)
        kernels.run(index, table, y, index.numel(), table.shape[1])
        return y
