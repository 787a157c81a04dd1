"""Packs the parameters in the constructor, before they get their values."""
# intent: broken
# says: tensors derived from them in __init__

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void run(const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) y[i * columns + j] = x[i * columns + j] * w[j] + b[j];
}
""",
    {"run": "const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.packed = torch.stack([self.weight.detach(), self.bias.detach()])

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, self.packed[0].contiguous(), self.packed[1].contiguous(), y, *x.shape)
        return y
