# level: 2
# precision: ieee
"""Gate weights of a mixture of experts: the k largest router logits of each token, normalised, in a dense matrix."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """scale * softmax over the chosen logits, zero elsewhere; whatever equals the k-th largest is chosen as well."""

    def __init__(self, k: int, scale: float) -> None:
        super().__init__()
        self.k = k
        self.scale = scale

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        smallest_chosen = torch.topk(logits, self.k, dim=-1).values[:, -1:]
        chosen = logits.masked_fill(logits < smallest_chosen, float("-inf"))
        return self.scale * torch.softmax(chosen, dim=-1)


tokens = 524288
experts = 128
k = 8
scale = 2.5

CPU_SIZES = {"tokens": 2048, "experts": 64}
MORE_SIZES = [{"tokens": 131072, "experts": 256}, {"tokens": 900001, "experts": 60, "k": 4}]
MORE_CPU_SIZES = [{"tokens": 1501, "experts": 60, "k": 4}]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, experts)]


def get_init_inputs() -> list[object]:
    return [k, scale]
