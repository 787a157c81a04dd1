# level: 1
# precision: ieee

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.table = nn.Embedding(count, width)

    def forward(self, index):
        return self.table(index)


def get_inputs():
    return [torch.randint(0, 500, (64, 32))]


def get_init_inputs():
    return [500, 48]
