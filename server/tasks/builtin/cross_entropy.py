# level: 1
# precision: ieee
"""Cross-entropy of logits over a large vocabulary with class labels, one loss per token."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """logsumexp(logits) - logits[label], row by row."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, labels, reduction="none")


tokens = 4096
vocabulary = 128256

CPU_SIZES = {"tokens": 256, "vocabulary": 8192}
MORE_SIZES = [{"tokens": 16384, "vocabulary": 32000}, {"tokens": 3001, "vocabulary": 50257}]
MORE_CPU_SIZES = [{"tokens": 301, "vocabulary": 5003}]


def get_inputs() -> list[torch.Tensor]:
    return [3.0 * torch.randn(tokens, vocabulary), torch.randint(vocabulary, (tokens,))]


def get_init_inputs() -> list[object]:
    return []
