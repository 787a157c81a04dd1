# level: 1
# precision: lowp
"""Rotary position embedding of queries and keys in bfloat16, with tables of cosines and sines."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Element i of a head is rotated together with element i + dim / 2, by the angle of its position."""

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return _rotate(q, cos[:, :, None], sin[:, :, None]), _rotate(k, cos[:, :, None], sin[:, :, None])


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


batch = 8
seq = 4096
heads = 32
kv_heads = 8
dim = 128

CPU_SIZES = {"batch": 2, "seq": 128, "heads": 8, "kv_heads": 2, "dim": 64}
MORE_SIZES = [{"batch": 64, "seq": 1024, "heads": 16, "kv_heads": 2}, {"batch": 5, "seq": 7001, "heads": 28, "dim": 80}]
MORE_CPU_SIZES = [{"batch": 3, "seq": 101, "heads": 6, "kv_heads": 3, "dim": 80}]
STRUCTURED_INPUTS = True


def get_inputs() -> list[torch.Tensor]:
    q = torch.randn(batch, seq, heads, dim, dtype=torch.bfloat16)
    k = torch.randn(batch, seq, kv_heads, dim, dtype=torch.bfloat16)
    # Each sequence of the batch continues at a position of its own.
    position = torch.randint(0, 32768, (batch, 1, 1)) + torch.arange(seq).view(1, seq, 1)
    angle = position * 10000.0 ** (-2.0 * torch.arange(dim // 2) / dim)
    return [q, k, angle.cos(), angle.sin()]


def get_init_inputs() -> list[object]:
    return []
