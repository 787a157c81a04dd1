"""Has PyTorch transpose the weight in every call, and reads it by rows."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_gelu_kernel(
    x, weight, bias, y, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        i = start + tl.arange(0, BLOCK_K)
        left = tl.load(x + row[:, None] * k + i[None, :], mask=(row < m)[:, None] & (i < k)[None, :], other=0.0)
        inside = (i < k)[:, None] & (column < n)[None, :]
        right = tl.load(weight + i[:, None] * n + column[None, :], mask=inside, other=0.0)
        total = tl.dot(left, right, total, input_precision="tf32")
    total += tl.load(bias + column, mask=column < n, other=0.0)[None, :]
    u = 0.7978845608028654 * (total + 0.044715 * total * total * total)
    total = total / (1.0 + tl.exp(-2.0 * u))
    mask = (row < m)[:, None] & (column < n)[None, :]
    tl.store(y + row[:, None] * n + column[None, :], total, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        m, k = x.shape
        n = self.linear.out_features
        y = torch.empty((m, n), dtype=x.dtype, device=x.device)
        weight = self.linear.weight.t().contiguous()
        grid = (triton.cdiv(m, 128), triton.cdiv(n, 64))
        linear_gelu_kernel[grid](
            x, weight, self.linear.bias, y, m, n, k, BLOCK_M=128, BLOCK_N=64, BLOCK_K=32, num_warps=4, num_stages=3
        )
        return y
