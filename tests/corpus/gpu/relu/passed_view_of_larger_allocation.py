"""Returns the left half of an allocation twice as wide."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x, y, columns, x_stride, y_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    m = i < columns
    tl.store(y + row * y_stride + i, tl.maximum(tl.load(x + row * x_stride + i, mask=m), 0.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty((rows, 2 * columns), dtype=x.dtype, device=x.device)[:, :columns]
        block = triton.next_power_of_2(columns)
        rows_kernel[(rows,)](x, y, columns, x.stride(0), y.stride(0), BLOCK=block, num_warps=8)
        return y
