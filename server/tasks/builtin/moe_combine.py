# level: 1
# precision: lowp
"""Results of a mixture of experts put back in the order of the tokens, weighted and added up."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """output[t] = sum over j of gates[t, j] * rows[index[t, j]]; each row belongs to one token."""

    def forward(self, rows: torch.Tensor, index: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        return (rows[index].float() * gates[:, :, None]).sum(dim=1).to(rows.dtype)


tokens = 16384
k = 4
dim = 4096

CPU_SIZES = {"tokens": 256, "dim": 512}
MORE_SIZES = [{"tokens": 8192, "k": 8, "dim": 7168}, {"tokens": 15001, "k": 6, "dim": 2900}]
MORE_CPU_SIZES = [{"tokens": 201, "k": 6, "dim": 300}]


def get_inputs() -> list[torch.Tensor]:
    rows = torch.randn(tokens * k, dim, dtype=torch.bfloat16)
    index = torch.randperm(tokens * k).view(tokens, k)
    return [rows, index, torch.softmax(torch.randn(tokens, k), dim=-1)]


def get_init_inputs() -> list[object]:
    return []
