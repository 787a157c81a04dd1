import torch
import torch.nn as nn

from kernel_env import native

SOURCE = """
__global__ void add_kernel(const float* x, const float* y, float* z, int64_t n) {
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}

extern "C" void add(const float* x, const float* y, float* z, int64_t n, cudaStream_t stream) {
    add_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, z, n);
}
"""

# The parameters of each function, spelled as in the source. A cudaStream_t is filled in by the helper.
kernels = native.load(SOURCE, {"add": "const float* x, const float* y, float* z, int64_t n, cudaStream_t stream"})


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.empty_like(x)
        kernels.add(x, y, z, x.numel())
        return z
