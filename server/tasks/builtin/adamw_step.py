# level: 2
# precision: ieee
"""One step of AdamW: new parameters and both new moments."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """The moments are corrected for their start at zero; decay shrinks parameters and is not in the gradient."""

    def __init__(self, rate: float, beta1: float, beta2: float, eps: float, decay: float, step: int) -> None:
        super().__init__()
        self.rate, self.beta1, self.beta2, self.eps, self.decay = rate, beta1, beta2, eps, decay
        self.correction1 = 1.0 - beta1**step
        self.correction2 = 1.0 - beta2**step

    def forward(
        self, weight: torch.Tensor, gradient: torch.Tensor, first: torch.Tensor, second: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        first = self.beta1 * first + (1.0 - self.beta1) * gradient
        second = self.beta2 * second + (1.0 - self.beta2) * gradient * gradient
        direction = (first / self.correction1) / (torch.sqrt(second / self.correction2) + self.eps)
        return (1.0 - self.rate * self.decay) * weight - self.rate * direction, first, second


rows = 8192
dim = 4096
rate = 0.02
beta1 = 0.9
beta2 = 0.95
eps = 1e-8
decay = 0.1
step = 10

CPU_SIZES = {"rows": 128, "dim": 2048}
MORE_SIZES = [{"rows": 128256, "dim": 256, "step": 1000}, {"rows": 5003, "dim": 5000}]
MORE_CPU_SIZES = [{"rows": 131, "dim": 1500}]
STRUCTURED_INPUTS = True


def get_inputs() -> list[torch.Tensor]:
    weight = 0.05 * torch.randn(rows, dim)
    gradient = torch.randn(rows, dim)
    first = 0.3 * torch.randn(rows, dim)
    # Squares: a second moment is never negative.
    second = 0.05 + 0.2 * torch.rand(rows, dim)
    return [weight, gradient, first, second]


def get_init_inputs() -> list[object]:
    return [rate, beta1, beta2, eps, decay, step]
