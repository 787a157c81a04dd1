# level: 1
# precision: ieee

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return x * self.weight + self.bias


def get_inputs():
    return [torch.randn(64, 1024)]


def get_init_inputs():
    return [1024]
