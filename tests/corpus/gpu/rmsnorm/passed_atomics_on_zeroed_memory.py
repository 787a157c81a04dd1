"""Adds up squares with atomics in memory that it has zeroed, then scales."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squares_kernel(x, squares, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    tl.atomic_add(squares + row, tl.sum(value * value, axis=0))


@triton.jit
def scale_kernel(x, squares, weight, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = i < columns
    scale = 1.0 / tl.sqrt(tl.load(squares + row) / columns + eps)
    value = tl.load(x + row * columns + i, mask=m)
    tl.store(y + row * columns + i, value * scale * tl.load(weight + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self, columns, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(columns))

    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty_like(x)
        squares = torch.empty(rows, device=x.device)
        squares.zero_()
        grid = (rows, triton.cdiv(columns, 1024))
        squares_kernel[grid](x, squares, columns, BLOCK=1024)
        scale_kernel[grid](x, squares, self.weight, y, columns, self.eps, BLOCK=1024)
        return y
