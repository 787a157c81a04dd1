# level: 1
# precision: ieee

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        return x.masked_fill(mask, 0.0)


def get_inputs():
    return [torch.randn(64, 1024), torch.ones(64, 1024, dtype=torch.bool)]


def get_init_inputs():
    return []
