import torch
import torch.nn as nn

from kernel_env import native

SOURCE = """
__global__ void scale_shift_kernel(const float* x, const float* scale, const float* shift, float* y, int64_t columns) {
    const int64_t row = blockIdx.x;
    for (int64_t column = threadIdx.x; column < columns; column += blockDim.x) {
        y[row * columns + column] = x[row * columns + column] * scale[column] + shift[column];
    }
}

extern "C" void scale_shift(const float* x, const float* scale, const float* shift, float* y,
                            int64_t rows, int64_t columns, cudaStream_t stream) {
    scale_shift_kernel<<<rows, 256, 0, stream>>>(x, scale, shift, y, columns);
}
"""

# The parameters of each function, spelled as in the source. A cudaStream_t is filled in by the helper.
kernels = native.load(
    SOURCE,
    {
        "scale_shift": "const float* x, const float* scale, const float* shift, float* y, "
        "int64_t rows, int64_t columns, cudaStream_t stream"
    },
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
