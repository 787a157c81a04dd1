"""A kernel that never ends, from the second call on."""

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    """
__global__ void spin(volatile float* y) { while (y[0] != 12345.0f) {} }
extern "C" void forever(float* y) { spin<<<1, 1>>>(y); }
""",
    {"forever": "float* y"},
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = torch.zeros_like(x)
        if self.calls > 1:
            kernels.forever(y)
        return y
