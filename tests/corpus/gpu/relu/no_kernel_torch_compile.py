"""Leaves the kernel to torch.compile."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = torch.compile(torch.relu)

    def forward(self, x):
        return self.relu(x)
