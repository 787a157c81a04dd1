"""Keeps coefficients of its own in a buffer that the reference does not have."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, const float* scale, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i] * scale[0]);
}
""",
    {"run": "const float* x, const float* scale, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([1.0]), persistent=False)

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, self.scale, y, x.numel())
        return y
