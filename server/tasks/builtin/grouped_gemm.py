# level: 1
# precision: lowp
"""Grouped matrix product in bfloat16: tokens sorted by expert, each multiplied by the matrix of its expert."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows offsets[e] to offsets[e + 1] of x belong to expert e; an expert may have none."""

    def __init__(self, experts: int, in_features: int, out_features: int) -> None:
        super().__init__()
        weight = torch.randn(experts, in_features, out_features) / in_features**0.5
        self.weight = nn.Parameter(weight.to(torch.bfloat16))

    def forward(self, x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        row = torch.arange(x.shape[0], device=x.device)
        expert = torch.searchsorted(offsets[1:], row, right=True)
        output = torch.matmul(x, self.weight[0])
        for e in range(1, self.weight.shape[0]):
            output = torch.where((expert == e)[:, None], torch.matmul(x, self.weight[e]), output)
        return output


tokens = 16384
experts = 16
in_features = 2048
out_features = 4096

CPU_SIZES = {"tokens": 192, "experts": 4, "in_features": 128, "out_features": 128}
MORE_SIZES = [
    {"tokens": 8192, "experts": 64, "out_features": 1536},
    {"tokens": 20011, "experts": 12, "in_features": 1400, "out_features": 3000},
]
MORE_CPU_SIZES = [{"tokens": 151, "experts": 6, "in_features": 100, "out_features": 120}]
FLOPS = 2 * tokens * in_features * out_features


def get_inputs() -> list[torch.Tensor]:
    bounds = torch.tensor([0, tokens])
    cuts = torch.randint(0, tokens + 1, (experts - 1,))
    offsets = torch.sort(torch.cat([bounds, cuts])).values
    return [torch.randn(tokens, in_features, dtype=torch.bfloat16), offsets]


def get_init_inputs() -> list[object]:
    return [experts, in_features, out_features]
