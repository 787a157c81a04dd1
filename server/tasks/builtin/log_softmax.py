"""Logarithm of the softmax over the last dimension of a matrix."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """x - logsumexp(x), row by row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(x, dim=1)


batch_size = 8192
dim = 16384

CPU_SIZES = {"batch_size": 256, "dim": 4096}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, dim)]


def get_init_inputs() -> list[object]:
    return []
