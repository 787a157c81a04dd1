# level: 1
# precision: tf32
"""Two-dimensional convolution of each channel by itself, with a 7 x 7 kernel, padding three and a bias."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Cross-correlation of (batch, channels, height, width) images; height and width are kept."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=7, padding=3, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.conv(x)
        return output


batch = 64
channels = 256
height = 56
width = 56

CPU_SIZES = {"batch": 4, "channels": 32, "height": 28, "width": 28}
MORE_SIZES = [
    {"batch": 32, "channels": 96, "height": 128, "width": 128},
    {"batch": 50, "channels": 200, "height": 75, "width": 63},
]
MORE_CPU_SIZES = [{"batch": 3, "channels": 20, "height": 31, "width": 37}]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    return [channels]
