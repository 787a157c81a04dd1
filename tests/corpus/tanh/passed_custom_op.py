"""The kernel is registered as an operator of its own."""

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


@torch.library.custom_op("submission_ops::tanh", mutates_args=())
def tanh(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    kernels.run(x, y, x.numel())
    return y


@tanh.register_fake
def _(x):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.submission_ops.tanh(x)
