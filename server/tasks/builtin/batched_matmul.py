# level: 1
# precision: tf32
"""Products of many pairs of small matrices."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """C[i] = A[i] B[i] for (batch, m, k) and (batch, k, n)."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.bmm(a, b)


batch = 16384
m = 64
n = 64
k = 64

CPU_SIZES = {"batch": 512, "m": 32, "n": 32, "k": 32}
MORE_SIZES = [{"batch": 131072, "m": 16, "n": 16, "k": 32}, {"batch": 20001, "m": 33, "n": 50, "k": 72}]
MORE_CPU_SIZES = [{"batch": 701, "m": 17, "n": 23, "k": 36}]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, m, k), torch.randn(batch, k, n)]


def get_init_inputs() -> list[object]:
    return []
