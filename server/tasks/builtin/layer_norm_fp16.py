# level: 1
# precision: lowp
"""Layer normalisation over the last dimension in float16, with scale and shift."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, row by row; the variance is the biased one."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=eps, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.norm(x)
        return output


rows = 32768
dim = 4096
eps = 1e-5

CPU_SIZES = {"rows": 512, "dim": 1024}
MORE_SIZES = [{"rows": 131072, "dim": 768}, {"rows": 10007, "dim": 7000}]
MORE_CPU_SIZES = [{"rows": 301, "dim": 1300}]


def get_inputs() -> list[torch.Tensor]:
    return [0.5 + 2.0 * torch.randn(rows, dim, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return [dim, eps]
