"""The kernel is registered as an operator by torch.library.custom_op."""

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


@torch.library.custom_op("corpus::softmax", mutates_args=())
def softmax(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
    return y


@softmax.register_fake
def _(x):
    return torch.empty_like(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.corpus.softmax(x)
