# level: 1
# precision: ieee

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(256, 4096)]


def get_init_inputs():
    return []
