# level: 1
# precision: lowp
"""Causal self-attention with several heads, in bfloat16."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """softmax(q k^T / sqrt(dim)) v for (batch, heads, seq, dim); a position sees itself and the ones before it."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        seq, dim = q.shape[-2:]
        scores = torch.matmul(q.float(), k.float().transpose(-2, -1)) / math.sqrt(dim)
        is_later = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
        weights = torch.softmax(scores.masked_fill(is_later, float("-inf")), dim=-1).to(q.dtype)
        return torch.matmul(weights.float(), v.float()).to(q.dtype)


batch = 2
heads = 16
seq = 4096
dim = 128

CPU_SIZES = {"batch": 1, "heads": 4, "seq": 256, "dim": 64}
MORE_SIZES = [{"batch": 1, "heads": 8, "seq": 8192}, {"batch": 8, "heads": 20, "seq": 1500, "dim": 96}]
MORE_CPU_SIZES = [{"batch": 2, "heads": 3, "seq": 190, "dim": 40}]
FLOPS = 2 * batch * heads * seq * (seq + 1) * dim


def get_inputs() -> list[torch.Tensor]:
    shape = (batch, heads, seq, dim)
    q = 2.0 * torch.randn(shape, dtype=torch.bfloat16)
    return [q, torch.randn(shape, dtype=torch.bfloat16), torch.randn(shape, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
