# level: 1
# precision: lowp
"""Product of two bfloat16 matrices."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """C = A B for (m, k) and (k, n), added up in fp32."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


m = 8192
n = 8192
k = 4096

CPU_SIZES = {"m": 128, "n": 192, "k": 256}
MORE_SIZES = [{"m": 256, "n": 28672, "k": 8192}, {"m": 5000, "n": 3000, "k": 7200}]
MORE_CPU_SIZES = [{"m": 150, "n": 200, "k": 250}]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(m, k, dtype=torch.bfloat16), torch.randn(k, n, dtype=torch.bfloat16) / k**0.5]


def get_init_inputs() -> list[object]:
    return []
