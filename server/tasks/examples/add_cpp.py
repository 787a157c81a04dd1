import torch
import torch.nn as nn

from kernel_env import native

SOURCE = """
extern "C" void add(const float* x, const float* y, float* z, int64_t n) {
    #pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) {
        z[i] = x[i] + y[i];
    }
}
"""

# The parameters of each function, spelled as in the source.
kernels = native.load(SOURCE, {"add": "const float* x, const float* y, float* z, int64_t n"})


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.empty_like(x)
        kernels.add(x, y, z, x.numel())
        return z
