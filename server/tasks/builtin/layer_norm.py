"""Layer normalisation over the last dimension, with scale and shift."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, row by row; the variance is the biased one."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.norm(x)
        return output


batch_size = 16384
dim = 8192
eps = 1e-5

CPU_SIZES = {"batch_size": 512, "dim": 2048}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, dim)]


def get_init_inputs() -> list[object]:
    return [dim, eps]
