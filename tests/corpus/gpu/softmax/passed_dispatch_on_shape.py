"""Chooses a kernel by the shape: rows in registers, or read twice where they are long."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    m = i < columns
    value = tl.load(x + row + i, mask=m, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row + i, value / tl.sum(value, axis=0), mask=m)


@triton.jit
def long_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    most = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(x + row + i, mask=i < columns, other=-float("inf"))
        new = tl.maximum(most, tl.max(value, axis=0))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(value - new), axis=0)
        most = new
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        m = i < columns
        tl.store(y + row + i, tl.exp(tl.load(x + row + i, mask=m) - most) / total, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty_like(x)
        if columns <= 2048:
            softmax_kernel[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns), num_warps=8)
        else:
            long_kernel[(rows,)](x, y, columns, BLOCK=2048, num_warps=8)
        return y
