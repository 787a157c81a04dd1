# level: 1
# precision: lowp
"""Causal linear attention with exponential decay in bfloat16, each head with a decay of its own."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """output[t] = sum over s <= t of decay^(t - s) (q[t] k[s] / sqrt(dim)) v[s]."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.register_buffer("log_decay", torch.log1p(-(2.0 ** -torch.linspace(3.0, 6.0, heads))))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        seq, dim = q.shape[-2:]
        position = torch.arange(seq, device=q.device)
        distance = position[:, None] - position[None, :]
        decay = torch.exp(distance.clamp(min=0) * self.log_decay[:, None, None]).tril()
        scores = torch.matmul(q.float(), k.float().transpose(-2, -1)) / math.sqrt(dim)
        weights = (scores * decay.float()).to(q.dtype)
        return torch.matmul(weights.float(), v.float()).to(q.dtype)


batch = 8
heads = 16
seq = 2048
dim = 128

CPU_SIZES = {"batch": 1, "heads": 4, "seq": 256, "dim": 64}
MORE_SIZES = [{"batch": 4, "heads": 8, "seq": 4096}, {"batch": 11, "heads": 20, "seq": 1500, "dim": 80}]
MORE_CPU_SIZES = [{"batch": 2, "heads": 3, "seq": 190, "dim": 48}]
# As a recurrence with a dim x dim state for each head: k v^T is added to it, q is multiplied by it.
FLOPS = 4 * batch * heads * seq * dim * dim


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, heads, seq, dim, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs() -> list[object]:
    return [heads]
