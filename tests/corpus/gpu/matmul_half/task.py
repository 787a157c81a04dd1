# level: 1
# precision: lowp

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(1024, 1024, dtype=torch.float16), torch.randn(1024, 1024, dtype=torch.float16)]


def get_init_inputs():
    return []
