"""PyTorch multiplies, a kernel does the activation: allowed on a fused task, and paid by its share."""

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    """
#include <cmath>
extern "C" void tanh_of(const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]); }
""",
    {"tanh_of": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        product = self.linear(x)
        y = torch.empty_like(product)
        kernels.tanh_of(product, y, y.numel())
        return y
