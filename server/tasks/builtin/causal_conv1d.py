# level: 2
# precision: lowp
"""Short causal convolution of each channel along the sequence, followed by SiLU, in bfloat16."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """silu(bias + sum over j of weight[j] x[t - width + 1 + j]); there are zeros before the first position."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.conv = nn.Conv1d(channels, channels, kernel_size=width, groups=channels, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.conv(F.pad(x, (self.width - 1, 0))))


batch = 8
channels = 4096
seq = 4096
width = 4

CPU_SIZES = {"batch": 2, "channels": 64, "seq": 512}
MORE_SIZES = [{"batch": 2, "channels": 2048, "seq": 32768}, {"batch": 7, "channels": 5000, "seq": 3001, "width": 3}]
MORE_CPU_SIZES = [{"batch": 3, "channels": 50, "seq": 301, "width": 3}]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, channels, seq, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [channels, width]
