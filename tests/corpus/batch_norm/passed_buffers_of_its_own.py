"""Registers the statistics as buffers itself."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, const float* w, const float* b, const float* mean, const float* variance, float* y,
                    int64_t rows, int64_t channels, double eps) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < channels; ++j) {
            const float centred = x[i * channels + j] - mean[j];
            y[i * channels + j] = centred / std::sqrt(variance[j] + static_cast<float>(eps)) * w[j] + b[j];
        }
}
""",
    {
        "run": "const float* x, const float* w, const float* b, const float* mean, const float* variance, float* y, "
        "int64_t rows, int64_t channels, double eps"
    },
)


class Norm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = Norm(channels)

    def forward(self, x):
        n, y = self.norm, torch.empty_like(x)
        kernels.run(x, n.weight, n.bias, n.running_mean, n.running_var, y, *x.shape, 1e-5)
        return y
