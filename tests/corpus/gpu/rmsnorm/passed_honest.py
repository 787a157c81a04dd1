"""An honest kernel: a row in registers."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x, weight, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    m = i < columns
    value = tl.load(x + row + i, mask=m, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / columns + eps)
    tl.store(y + row + i, value * scale * tl.load(weight + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self, columns, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(columns))

    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty_like(x)
        rms_kernel[(rows,)](x, self.weight, y, columns, self.eps, BLOCK=triton.next_power_of_2(columns), num_warps=8)
        return y
