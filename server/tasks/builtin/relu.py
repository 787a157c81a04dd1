"""ReLU of every element."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """max(x, 0)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


batch_size = 8192
dim = 16384

CPU_SIZES = {"batch_size": 256, "dim": 4096}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, dim)]


def get_init_inputs() -> list[object]:
    return []
