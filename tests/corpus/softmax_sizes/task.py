# level: 1
# precision: ieee

import torch
import torch.nn as nn

rows = 128
columns = 1024

CPU_SIZES = {"rows": 64}
MORE_CPU_SIZES = [{"columns": 777}]


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
