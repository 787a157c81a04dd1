# level: 2
# precision: lowp
"""Feed-forward block with a SiLU gate, in bfloat16: three matrix products."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """down(silu(gate(x)) * up(x)), without biases."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False, dtype=torch.bfloat16)
        self.up = nn.Linear(dim, hidden, bias=False, dtype=torch.bfloat16)
        self.down = nn.Linear(hidden, dim, bias=False, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return output


tokens = 4096
dim = 4096
hidden = 11008

CPU_SIZES = {"tokens": 64, "dim": 256, "hidden": 512}
MORE_SIZES = [{"tokens": 64, "dim": 8192, "hidden": 28672}, {"tokens": 3000, "dim": 3000, "hidden": 8200}]
MORE_CPU_SIZES = [{"tokens": 50, "dim": 280, "hidden": 440}]


def get_inputs() -> list[torch.Tensor]:
    return [2.0 * torch.randn(tokens, dim, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [dim, hidden]
