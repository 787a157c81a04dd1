# level: 2
# precision: lowp
"""Linear layer with int8 weights and one scale per output feature, for a few bfloat16 rows."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """y = (x weight^T) * scale, added up in fp32."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (torch.matmul(x.float(), weight.float().t()) * scale).to(x.dtype)


rows = 32
in_features = 8192
out_features = 32768

CPU_SIZES = {"rows": 16, "in_features": 512, "out_features": 1024}
MORE_SIZES = [
    {"rows": 2048, "in_features": 4096, "out_features": 14336},
    {"rows": 7, "in_features": 9000, "out_features": 30011},
]
MORE_CPU_SIZES = [{"rows": 5, "in_features": 600, "out_features": 1001}]
STRUCTURED_INPUTS = True


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(rows, in_features, dtype=torch.bfloat16)
    weight = torch.randint(-127, 128, (out_features, in_features), dtype=torch.int8)
    # 73 is the standard deviation of the weights.
    scale = (0.5 + torch.rand(out_features)) / (73.0 * in_features**0.5)
    return [x, weight, scale]


def get_init_inputs() -> list[object]:
    return []
