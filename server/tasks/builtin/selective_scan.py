# level: 2
# precision: ieee
"""Selective scan of a state space model with a diagonal state matrix."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """h = exp(d a) h + d b[t] u[t] and y[t] = c[t] h + skip u[t], with d = softplus(delta[t] + bias)."""

    def __init__(self, dim: int, state: int) -> None:
        super().__init__()
        self.log_a = nn.Parameter(torch.log(torch.arange(1, state + 1).float()).repeat(dim, 1))
        self.bias = nn.Parameter(torch.full((dim,), -2.0))
        self.skip = nn.Parameter(torch.ones(dim))

    def forward(self, u: torch.Tensor, delta: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        a = -torch.exp(self.log_a)
        step = F.softplus(delta + self.bias)
        h = u.new_zeros(u.shape[0], *a.shape)
        outputs = []
        for t in range(u.shape[1]):
            decay = torch.exp(step[:, t, :, None] * a)
            h = decay * h + (step[:, t] * u[:, t])[:, :, None] * b[:, t, None, :]
            outputs.append((h * c[:, t, None, :]).sum(dim=-1))
        return torch.stack(outputs, dim=1) + self.skip * u


batch = 64
seq = 256
dim = 4096
state = 16

CPU_SIZES = {"batch": 2, "seq": 64, "dim": 64}
MORE_SIZES = [{"batch": 128, "dim": 2048, "state": 32}, {"batch": 41, "seq": 243, "dim": 5000}]
MORE_CPU_SIZES = [{"batch": 3, "seq": 45, "dim": 50}]


def get_inputs() -> list[torch.Tensor]:
    u = torch.randn(batch, seq, dim)
    return [u, torch.randn(batch, seq, dim), torch.randn(batch, seq, state), torch.randn(batch, seq, state)]


def get_init_inputs() -> list[object]:
    return [dim, state]
