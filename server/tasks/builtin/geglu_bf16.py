# level: 2
# precision: lowp
"""GELU gate in bfloat16: one half of each row, through GELU, times the other half."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """gelu(first half) * second half, with the exact form of GELU."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, value = x.chunk(2, dim=-1)
        return F.gelu(gate) * value


rows = 16384
dim = 8192

CPU_SIZES = {"rows": 256, "dim": 1024}
MORE_SIZES = [{"rows": 65536, "dim": 2816}, {"rows": 9001, "dim": 13000}]
MORE_CPU_SIZES = [{"rows": 201, "dim": 1300}]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, 2 * dim, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
