"""The work is in a submodule, called through nn.Module, under no_grad."""

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


class Kernel(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    @torch.no_grad()
    def forward(self, given):
        made = torch.empty_like(given)
        self.function(given, made, given.numel())
        return made

    def extra_repr(self):
        return "tanh"


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Identity(), Kernel(kernels.run))
        self.eval()

    def forward(self, x, *, scale=None):
        with torch.inference_mode(False):
            return self.body(x)
