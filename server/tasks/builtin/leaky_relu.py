"""Leaky ReLU of every element, slope given at construction."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """x where positive, else negative_slope * x."""

    def __init__(self, negative_slope: float) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, negative_slope=self.negative_slope)


batch_size = 8192
dim = 16384
negative_slope = 0.01

CPU_SIZES = {"batch_size": 256, "dim": 4096}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, dim)]


def get_init_inputs() -> list[object]:
    return [negative_slope]
