"""A kernel in Triton, which the interpreter runs here."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    positive = tl.exp(-2.0 * tl.abs(value))
    result = (1.0 - positive) / (1.0 + positive)
    small = value - value * value * value / 3.0
    result = tl.where(tl.abs(value) < 0.01, tl.abs(small), result)
    tl.store(y + i, tl.where(value < 0, -result, result), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        tanh_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192)
        return y
