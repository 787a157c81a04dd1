# level: 1
# precision: ieee
"""The k largest values of each row, largest first."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Values only; where the row holds a value several times, so may the output."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.topk(x, self.k, dim=-1).values


rows = 65536
dim = 4096
k = 64

CPU_SIZES = {"rows": 128, "dim": 1024}
MORE_SIZES = [{"rows": 8192, "dim": 32768}, {"rows": 30001, "dim": 5000, "k": 40}]
MORE_CPU_SIZES = [{"rows": 101, "dim": 900, "k": 40}]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, dim)]


def get_init_inputs() -> list[object]:
    return [k]
