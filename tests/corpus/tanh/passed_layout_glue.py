"""Views, copies and cleared memory around a kernel of its own."""

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
        flat = x.view(-1).reshape(x.shape).contiguous()
        y = torch.zeros_like(flat)
        kernels.run(flat, y, y.numel())
        out = torch.empty_like(x)
        out.copy_(y.t().t())
        return out
