"""Casts to single precision and back by PyTorch, which moves data and computes nothing."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void run(const float* x, const float* y, float* z, int64_t n) {
    for (int64_t i = 0; i < n; ++i) z[i] = x[i] * y[i];
}
""",
    {"run": "const float* x, const float* y, float* z, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        z = torch.empty(x.shape, dtype=torch.float32)
        kernels.run(x.float(), y.to(torch.float32), z, x.numel())
        return z.to(x.dtype)
