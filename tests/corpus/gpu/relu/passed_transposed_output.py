"""Returns a tensor that is stored by columns."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def transposing_kernel(x, y, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = (row < rows)[:, None] & (column < columns)[None, :]
    value = tl.maximum(tl.load(x + row[:, None] * columns + column[None, :], mask=m), 0.0)
    tl.store(y + column[:, None] * rows + row[None, :], tl.trans(value), mask=tl.trans(m))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty((columns, rows), dtype=x.dtype, device=x.device).t()
        grid = (triton.cdiv(rows, 64), triton.cdiv(columns, 64))
        transposing_kernel[grid](x, y, rows, columns, BLOCK=64, num_warps=8)
        return y
