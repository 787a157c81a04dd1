# level: 1
# precision: lowp
"""Causal attention over a window of the latest positions, in float16."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """A position sees itself and the window - 1 positions before it, or as many as there are."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        seq, dim = q.shape[-2:]
        scores = torch.matmul(q.float(), k.float().transpose(-2, -1)) / math.sqrt(dim)
        position = torch.arange(seq, device=q.device)
        distance = position[:, None] - position[None, :]
        is_outside = (distance < 0) | (distance >= self.window)
        weights = torch.softmax(scores.masked_fill(is_outside, float("-inf")), dim=-1).to(q.dtype)
        return torch.matmul(weights.float(), v.float()).to(q.dtype)


batch = 2
heads = 16
seq = 4096
dim = 128
window = 1024

CPU_SIZES = {"batch": 1, "heads": 4, "seq": 256, "dim": 64, "window": 64}
MORE_SIZES = [{"batch": 1, "heads": 12, "seq": 8192}, {"batch": 4, "heads": 24, "seq": 2100, "dim": 80, "window": 500}]
MORE_CPU_SIZES = [{"batch": 2, "heads": 3, "seq": 170, "dim": 48, "window": 45}]
FLOPS = 4 * batch * heads * dim * (seq * window - window * (window - 1) // 2)


def get_inputs() -> list[torch.Tensor]:
    shape = (batch, heads, seq, dim)
    q = 2.0 * torch.randn(shape, dtype=torch.float16)
    return [q, torch.randn(shape, dtype=torch.float16), torch.randn(shape, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return [window]
