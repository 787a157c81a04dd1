# level: 1
# precision: ieee
"""Running sum along the rows of a matrix."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """output[i, j] = x[i, 0] + ... + x[i, j]."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, dim=1)


rows = 16384
dim = 8192

CPU_SIZES = {"rows": 256, "dim": 4096}
MORE_SIZES = [{"rows": 1024, "dim": 65536}, {"rows": 40001, "dim": 2500}]
MORE_CPU_SIZES = [{"rows": 301, "dim": 2500}]


def get_inputs() -> list[torch.Tensor]:
    return [0.1 * torch.randn(rows, dim)]


def get_init_inputs() -> list[object]:
    return []
