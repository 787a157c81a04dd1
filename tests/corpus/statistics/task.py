# level: 2
# precision: ieee

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        largest, where = x.max(dim=1)
        return x - largest[:, None], (largest, where)


def get_inputs():
    return [torch.randn(64, 1024)]


def get_init_inputs():
    return []
