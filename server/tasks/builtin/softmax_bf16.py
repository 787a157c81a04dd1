# level: 1
# precision: lowp
"""Softmax over the last dimension of a bfloat16 matrix."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Every row of the output is positive and sums to one, up to rounding; exponentials and sums are fp32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


rows = 32768
dim = 4096

CPU_SIZES = {"rows": 256, "dim": 2048}
MORE_SIZES = [{"rows": 4096, "dim": 50304}, {"rows": 20001, "dim": 6000}]
MORE_CPU_SIZES = [{"rows": 201, "dim": 1500}]


def get_inputs() -> list[torch.Tensor]:
    return [3.0 * torch.randn(rows, dim, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
