"""One program per multiprocessor walks over the blocks."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def persistent_kernel(x, y, n, BLOCK: tl.constexpr):
    for block in tl.range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0), num_stages=3):
        i = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        m = i < n
        tl.store(y + i, tl.maximum(tl.load(x + i, mask=m), 0.0), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.programs = torch.cuda.get_device_properties(0).multi_processor_count * 4

    def forward(self, x):
        y = torch.empty_like(x)
        persistent_kernel[(self.programs,)](x, y, x.numel(), BLOCK=2048, num_warps=4)
        return y
