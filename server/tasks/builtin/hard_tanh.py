"""Clamp of every element to [-1, 1]."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """min(max(x, -1), 1)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardtanh(x, min_val=-1.0, max_val=1.0)


batch_size = 8192
dim = 16384

CPU_SIZES = {"batch_size": 256, "dim": 4096}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, dim)]


def get_init_inputs() -> list[object]:
    return []
