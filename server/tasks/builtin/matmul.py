"""Product of two square matrices."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """C = A B for (n, n) matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


n = 4096

CPU_SIZES = {"n": 320}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(n, n), torch.randn(n, n)]


def get_init_inputs() -> list[object]:
    return []
