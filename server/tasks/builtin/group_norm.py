# level: 1
# precision: ieee
"""Group normalisation of images, with scale and shift per channel."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Mean and biased variance over the channels of a group and all places of an image."""

    def __init__(self, groups: int, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.norm(x)
        return output


batch = 32
channels = 512
height = 64
width = 64
groups = 32

CPU_SIZES = {"batch": 16, "channels": 64, "height": 32, "width": 32, "groups": 8}
MORE_SIZES = [
    {"batch": 64, "channels": 1280, "height": 32, "width": 32},
    {"batch": 27, "channels": 330, "height": 75, "width": 90, "groups": 11},
]
MORE_CPU_SIZES = [{"batch": 11, "channels": 60, "height": 37, "width": 29, "groups": 6}]


def get_inputs() -> list[torch.Tensor]:
    return [0.5 + 2.0 * torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    return [groups, channels]
