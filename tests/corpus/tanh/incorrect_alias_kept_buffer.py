"""Writes every output to the same buffer."""
# intent: broken
# says: not a new tensor

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
    def __init__(self):
        super().__init__()
        self.y = torch.empty(64, 1024)

    def forward(self, x):
        kernels.run(x, self.y, x.numel())
        return self.y
