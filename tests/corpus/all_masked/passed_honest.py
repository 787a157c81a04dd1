"""Its result is zero everywhere, since that is right."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void run(const float* x, const bool* mask, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = mask[i] ? 0.0f : x[i];
}
""",
    {"run": "const float* x, const bool* mask, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        y = torch.empty_like(x)
        kernels.run(x, mask, y, x.numel())
        return y
