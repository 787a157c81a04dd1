# level: 2
"""Linear layer followed by GELU: matrix product, bias and activation."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """gelu(x W^T + b) with the tanh form of GELU."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x), approximate="tanh")


batch_size = 8192
in_features = 4096
out_features = 4096

CPU_SIZES = {"batch_size": 128, "in_features": 256, "out_features": 512}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_features)]


def get_init_inputs() -> list[object]:
    return [in_features, out_features]
