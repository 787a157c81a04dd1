"""The kernel is registered as an operator by torch.library.triton_op."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    m = i < columns
    value = tl.load(x + row + i, mask=m, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row + i, value / tl.sum(value, axis=0), mask=m)


@triton_op("corpus::row_softmax", mutates_args={})
def softmax(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    wrap_triton(softmax_kernel)[(x.shape[0],)](x, y, x.shape[1], BLOCK=block, num_warps=8)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x)
