# level: 2
# precision: ieee

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        return torch.softmax(x.masked_fill(mask, float("-inf")), dim=1)


def get_inputs():
    mask = torch.rand(64, 1024) < 0.5
    mask[::8] = True
    return [torch.randn(64, 1024), mask]


def get_init_inputs():
    return []
