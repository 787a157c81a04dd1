"""The maximum in PTX."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    value = tl.load(x + i, mask=m)
    value = tl.inline_asm_elementwise(
        "max.f32 $0, $1, 0f00000000;", "=f,f", [value], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(y + i, value, mask=m)


def relu(x, y):
    relu_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096, num_warps=8)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x, torch.empty_like(x))
