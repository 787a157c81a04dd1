# level: 1
# precision: ieee

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.eval()

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(256, 256)]


def get_init_inputs():
    return [256]
