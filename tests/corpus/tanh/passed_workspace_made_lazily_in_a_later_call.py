"""Makes its workspace anew every third call."""

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
        self.calls, self.workspace = 0, None

    def forward(self, x):
        if self.calls % 3 == 0:
            self.workspace = torch.empty_like(x)
        self.calls += 1
        kernels.run(x, self.workspace, x.numel())
        y = torch.empty_like(x)
        y.copy_(self.workspace)
        return y
