# level: 2
# precision: lowp
"""Linear layer with fp8 (e4m3) weights and one scale per block of 128 x 128 weights, for bfloat16 inputs."""

import torch
import torch.nn as nn

BLOCK = 128


class Model(nn.Module):
    """y = x W^T, where W[i, j] = weight[i, j] * scale[i // 128, j // 128]; added up in fp32."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        rows, columns = weight.shape
        spread = scale.repeat_interleave(BLOCK, dim=0)[:rows].repeat_interleave(BLOCK, dim=1)[:, :columns]
        return torch.matmul(x.float(), (weight.float() * spread).t()).to(x.dtype)


tokens = 4096
in_features = 4096
out_features = 7168

CPU_SIZES = {"tokens": 64, "in_features": 256, "out_features": 384}
MORE_SIZES = [
    {"tokens": 64, "in_features": 18432, "out_features": 16384},
    {"tokens": 3000, "in_features": 2900, "out_features": 6000},
]
MORE_CPU_SIZES = [{"tokens": 50, "in_features": 300, "out_features": 200}]
STRUCTURED_INPUTS = True


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(tokens, in_features, dtype=torch.bfloat16)
    weight = torch.randn(out_features, in_features).to(torch.float8_e4m3fn)
    blocks = (-(-out_features // BLOCK), -(-in_features // BLOCK))
    scale = (0.25 + 1.5 * torch.rand(blocks)) / in_features**0.5
    return [x, weight, scale]


def get_init_inputs() -> list[object]:
    return []
