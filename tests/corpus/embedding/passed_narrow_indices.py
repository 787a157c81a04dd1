"""Brings the indices to 32 bits first, by a kernel of its own."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void narrow(const int64_t* wide, int32_t* index, int64_t count) {
    for (int64_t i = 0; i < count; ++i) index[i] = static_cast<int32_t>(wide[i]);
}
extern "C" void run(const int32_t* index, const float* table, float* y, int64_t count, int64_t width) {
    for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < width; ++j) y[i * width + j] = table[index[i] * width + j];
}
""",
    {
        "narrow": "const int64_t* wide, int32_t* index, int64_t count",
        "run": "const int32_t* index, const float* table, float* y, int64_t count, int64_t width",
    },
)


class ModelNew(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.table = nn.Embedding(num_embeddings=count, embedding_dim=width)
        self.width = width

    def forward(self, index):
        narrow = torch.empty(index.shape, dtype=torch.int32)
        kernels.narrow(index, narrow, index.numel())
        y = self.table.weight.new_empty(index.numel(), self.width)
        kernels.run(narrow, self.table.weight, y, index.numel(), self.width)
        return y.reshape(*index.shape, -1)
