"""Holds the parameters in a submodule of another structure."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void run(const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) y[i * columns + j] = x[i * columns + j] * w[j] + b[j];
}
""",
    {"run": "const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t columns"},
)


class Held(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features))
        self.bias = nn.Parameter(torch.empty(features))
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)


class ModelNew(nn.Module):
    def __init__(self, features: int, *, device: torch.device | None = None):
        super().__init__()
        self.inner = Held(features).to(device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self.inner.weight.data, self.inner.bias.detach()
        y = torch.empty_like(x)
        kernels.run(x, weight, bias, y, *x.shape)
        return y
