# level: 2
# precision: lowp
"""Residual addition followed by root-mean-square normalisation in bfloat16; both results are returned."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """hidden = x + residual; returns hidden / sqrt(mean(hidden^2) + eps) * weight, and hidden."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = x.float() + residual.float()
        scale = torch.rsqrt(hidden.square().mean(dim=-1, keepdim=True) + self.eps)
        return (hidden * scale * self.weight).to(x.dtype), hidden.to(x.dtype)


rows = 16384
dim = 4096
eps = 1e-5

CPU_SIZES = {"rows": 512, "dim": 1024}
MORE_SIZES = [{"rows": 65536, "dim": 1024}, {"rows": 9001, "dim": 5500}]
MORE_CPU_SIZES = [{"rows": 301, "dim": 1300}]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, dim, dtype=torch.bfloat16), torch.randn(rows, dim, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [dim, eps]
