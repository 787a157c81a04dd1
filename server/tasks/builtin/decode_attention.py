# level: 1
# precision: lowp
"""Attention of one new token per sequence to a cache of keys and values, filled to another length in each sequence."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """Positions of the cache from `lengths` on are not seen; several query heads share a key and value head."""

    def forward(
        self, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        batch, heads, dim = q.shape
        kv_heads, capacity = k_cache.shape[1:3]
        grouped = q.float().view(batch, kv_heads, heads // kv_heads, dim)
        scores = torch.matmul(grouped, k_cache.float().transpose(-2, -1)) / math.sqrt(dim)
        is_empty = torch.arange(capacity, device=q.device) >= lengths.view(batch, 1, 1, 1)
        weights = torch.softmax(scores.masked_fill(is_empty, float("-inf")), dim=-1).to(q.dtype)
        return torch.matmul(weights.float(), v_cache.float()).view(batch, heads, dim).to(q.dtype)


batch = 64
heads = 32
kv_heads = 8
capacity = 4096
dim = 128

CPU_SIZES = {"batch": 4, "heads": 8, "kv_heads": 2, "capacity": 512, "dim": 64}
MORE_SIZES = [{"batch": 4, "capacity": 32768}, {"batch": 50, "heads": 30, "kv_heads": 5, "capacity": 5000, "dim": 96}]
MORE_CPU_SIZES = [{"batch": 3, "heads": 6, "kv_heads": 3, "capacity": 700, "dim": 80}]
# Lengths are spread evenly between half the capacity and all of it: three quarters of the cache are read.
FLOPS = 3 * batch * heads * capacity * dim
BYTES = 3 * batch * kv_heads * capacity * dim + 4 * batch * heads * dim + 8 * batch


def get_inputs() -> list[torch.Tensor]:
    q = 2.0 * torch.randn(batch, heads, dim, dtype=torch.bfloat16)
    k_cache = torch.randn(batch, kv_heads, capacity, dim, dtype=torch.bfloat16)
    v_cache = torch.randn(batch, kv_heads, capacity, dim, dtype=torch.bfloat16)
    return [q, k_cache, v_cache, torch.randint(capacity // 2, capacity + 1, (batch,))]


def get_init_inputs() -> list[object]:
    return []
