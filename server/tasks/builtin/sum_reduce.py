"""Sum over the middle dimension of a batch of matrices, keeping that dimension with length one."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Sum over dimension 1: (batch, rows, columns) -> (batch, 1, columns)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x, dim=1, keepdim=True)


batch_size = 64
rows = 2048
columns = 1024

CPU_SIZES = {"batch_size": 8, "rows": 256, "columns": 512}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, rows, columns)]


def get_init_inputs() -> list[object]:
    return []
