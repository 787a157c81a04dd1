# level: 1
# precision: ieee

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, columns, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + self.eps) * self.weight


def get_inputs():
    return [torch.randn(4096, 4096)]


def get_init_inputs():
    return [4096, 1e-5]
