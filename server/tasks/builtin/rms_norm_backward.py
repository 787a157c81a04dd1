# level: 2
# precision: ieee
"""Gradients of root-mean-square normalisation with respect to its input and its weight."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """For y = x / sqrt(mean(x^2) + eps) * weight and the gradient of y: those of x and of the weight."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, gradient: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)
        normal = x * scale
        weighted = gradient * self.weight
        along = (weighted * normal).mean(dim=-1, keepdim=True)
        return scale * (weighted - normal * along), (gradient * normal).sum(dim=0)


rows = 16384
dim = 4096
eps = 1e-5

CPU_SIZES = {"rows": 256, "dim": 1024}
MORE_SIZES = [{"rows": 65536, "dim": 1024}, {"rows": 7001, "dim": 5500}]
MORE_CPU_SIZES = [{"rows": 201, "dim": 1300}]


def get_inputs() -> list[torch.Tensor]:
    x = 2.0 * torch.randn(rows, dim)
    # Each row partly along x, or against it: the part that the mean square takes away is then no rounding error.
    return [0.1 * torch.randn(rows, dim) + 0.05 * torch.randn(rows, 1) * x, x]


def get_init_inputs() -> list[object]:
    return [dim, eps]
