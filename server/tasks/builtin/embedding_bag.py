# level: 1
# precision: ieee
"""Sum of the rows of a large table that each bag of indices names."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """output[i] = table[indices[i, 0]] + ... + table[indices[i, -1]]; an index may come more than once."""

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(rows, dim, mode="sum")

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.table(indices)
        return output


rows = 2000000
dim = 128
bags = 32768
bag_size = 32

CPU_SIZES = {"rows": 20000, "dim": 64, "bags": 2048, "bag_size": 16}
MORE_SIZES = [{"rows": 500000, "dim": 256, "bag_size": 16}, {"rows": 3000001, "dim": 80, "bags": 40001, "bag_size": 27}]
MORE_CPU_SIZES = [{"rows": 15001, "dim": 80, "bags": 1301, "bag_size": 27}]
# Each row that is named is read once; the number of different rows is the expected one.
BYTES = 4 * rows * dim * (1 - (1 - 1 / rows) ** (bags * bag_size)) + 8 * bags * bag_size + 4 * bags * dim


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(rows, (bags, bag_size))]


def get_init_inputs() -> list[object]:
    return [rows, dim]
