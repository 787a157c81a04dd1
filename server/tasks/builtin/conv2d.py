"""Two-dimensional convolution with a 3 x 3 kernel, padding one and a bias."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Cross-correlation of (batch, in_channels, height, width) images; height and width are kept."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.conv(x)
        return output


batch_size = 64
in_channels = 64
out_channels = 128
height = 112
width = 112

CPU_SIZES = {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 32, "width": 32}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs() -> list[object]:
    return [in_channels, out_channels]
