"""Linear layer and GELU in one Triton kernel: bias and activation are applied to the tile before it is stored."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 32
GROUP_M = 8


@triton.jit
def linear_gelu_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    # Programs that run at the same time share rows of the left factor and columns of the right one in L2.
    program = tl.program_id(0)
    blocks_n = tl.cdiv(n, BLOCK_N)
    group = program // (GROUP_M * blocks_n)
    first_m = group * GROUP_M
    group_rows = min(tl.cdiv(m, BLOCK_M) - first_m, GROUP_M)
    block_m = first_m + (program % (GROUP_M * blocks_n)) % group_rows
    block_n = (program % (GROUP_M * blocks_n)) // group_rows

    row = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        left_mask = (row < m)[:, None] & (inner < k)[None, :]
        right_mask = (inner < k)[:, None] & (column < n)[None, :]
        left = tl.load(x_ptr + row[:, None] * k + inner[None, :], mask=left_mask, other=0.0)
        right = tl.load(weight_ptr + column[None, :] * k + inner[:, None], mask=right_mask, other=0.0)
        total = tl.dot(left, right, total, input_precision="tf32")
    total += tl.load(bias_ptr + column, mask=column < n, other=0.0)[None, :]
    u = 0.7978845608028654 * (total + 0.044715 * total * total * total)
    total = total / (1.0 + tl.exp(-2.0 * u))
    mask = (row < m)[:, None] & (column < n)[None, :]
    tl.store(y_ptr + row.to(tl.int64)[:, None] * n + column[None, :], total, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)  # holds the parameters under the reference's names

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        m, k = x.shape
        weight, bias = self.linear.weight, self.linear.bias
        n = weight.shape[0]
        y = torch.empty((m, n), dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)
        linear_gelu_kernel[grid](
            x, weight, bias, y, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps=8, num_stages=4
        )
        return y
