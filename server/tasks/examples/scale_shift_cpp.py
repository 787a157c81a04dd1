import torch
import torch.nn as nn

from kernel_env import native

SOURCE = """
extern "C" void scale_shift(const float* x, const float* scale, const float* shift, float* y,
                            int64_t rows, int64_t columns) {
    #pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * columns;
        float* to = y + row * columns;
        #pragma omp simd
        for (int64_t column = 0; column < columns; ++column) {
            to[column] = from[column] * scale[column] + shift[column];
        }
    }
}
"""

# The parameters of each function, spelled as in the source.
kernels = native.load(
    SOURCE,
    {"scale_shift": "const float* x, const float* scale, const float* shift, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(columns))
        self.shift = nn.Parameter(torch.zeros(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        kernels.scale_shift(x, self.scale, self.shift, y, x.shape[0], x.shape[1])
        return y
