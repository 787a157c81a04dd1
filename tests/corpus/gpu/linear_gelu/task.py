# level: 2
# precision: tf32

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return nn.functional.gelu(self.linear(x), approximate="tanh")


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return [1024, 1024]
