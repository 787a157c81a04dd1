# level: 1
# precision: lowp

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return x * y


def get_inputs():
    return [torch.randn(64, 1024, dtype=torch.bfloat16), torch.randn(64, 1024, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
