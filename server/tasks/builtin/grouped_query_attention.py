# level: 1
# precision: lowp
"""Causal attention in which several query heads share one key and value head, in bfloat16."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """Query head h of `heads` uses key and value head h // (heads / kv_heads)."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        batch, heads, seq, dim = q.shape
        kv_heads = k.shape[1]
        grouped = q.float().view(batch, kv_heads, heads // kv_heads * seq, dim)
        scores = torch.matmul(grouped, k.float().transpose(-2, -1)) / math.sqrt(dim)
        is_later = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.view(batch, heads, seq, seq).masked_fill(is_later, float("-inf"))
        weights = torch.softmax(scores, dim=-1).to(q.dtype).view(batch, kv_heads, heads // kv_heads * seq, seq)
        return torch.matmul(weights.float(), v.float()).view(batch, heads, seq, dim).to(q.dtype)


batch = 1
heads = 32
kv_heads = 8
seq = 4096
dim = 128

CPU_SIZES = {"heads": 8, "kv_heads": 2, "seq": 192, "dim": 64}
MORE_SIZES = [{"batch": 16, "heads": 16, "kv_heads": 2, "seq": 1024}, {"batch": 3, "heads": 40, "seq": 1900}]
MORE_CPU_SIZES = [{"heads": 6, "kv_heads": 3, "seq": 150, "dim": 80}]
FLOPS = 2 * batch * heads * seq * (seq + 1) * dim


def get_inputs() -> list[torch.Tensor]:
    q = 2.0 * torch.randn(batch, heads, seq, dim, dtype=torch.bfloat16)
    k = torch.randn(batch, kv_heads, seq, dim, dtype=torch.bfloat16)
    v = torch.randn(batch, kv_heads, seq, dim, dtype=torch.bfloat16)
    return [q, k, v]


def get_init_inputs() -> list[object]:
    return []
