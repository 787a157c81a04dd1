"""Two kernels: maximum and sum per row into a workspace kept between calls, then the values."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def statistics_kernel(x, largest, total, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    most = -float("inf")
    sum = 0.0
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
        new = tl.maximum(most, tl.max(value, axis=0))
        sum = sum * tl.exp(most - new) + tl.sum(tl.exp(value - new), axis=0)
        most = new
    tl.store(largest + row, most)
    tl.store(total + row, sum)


@triton.jit
def values_kernel(x, largest, total, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = i < columns
    value = tl.load(x + row * columns + i, mask=m)
    tl.store(y + row * columns + i, tl.exp(value - tl.load(largest + row)) / tl.load(total + row), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspace = None

    def forward(self, x):
        rows, columns = x.shape
        if self.workspace is None or self.workspace.shape[1] < rows:
            self.workspace = torch.empty((2, rows), device=x.device)
        y = torch.empty_like(x)
        largest, total = self.workspace[0], self.workspace[1]
        statistics_kernel[(rows,)](x, largest, total, columns, BLOCK=1024, num_warps=4)
        values_kernel[(rows, triton.cdiv(columns, 1024))](x, largest, total, y, columns, BLOCK=1024, num_warps=4)
        return y
