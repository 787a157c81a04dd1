"""Allocates with empty_strided, views as flat, and gives the shape back."""

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
        y = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
        flat, given = y.view(-1), x.reshape(-1)
        kernels.run(given, flat, flat.numel())
        return flat.reshape(x.shape).unsqueeze(0).squeeze(0)
