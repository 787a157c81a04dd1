"""Folds statistics and parameters into a factor and an offset, again whenever one changes."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void fold(const float* w, const float* b, const float* mean, const float* variance, float* factor,
                     float* offset, int64_t channels) {
    for (int64_t j = 0; j < channels; ++j) {
        factor[j] = w[j] / std::sqrt(variance[j] + 1e-5f);
        offset[j] = b[j] - mean[j] * factor[j];
    }
}
extern "C" void run(const float* x, const float* factor, const float* offset, float* y, int64_t rows,
                    int64_t channels) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < channels; ++j) y[i * channels + j] = x[i * channels + j] * factor[j] + offset[j];
}
""",
    {
        "fold": "const float* w, const float* b, const float* mean, const float* variance, float* factor, "
        "float* offset, int64_t channels",
        "run": "const float* x, const float* factor, const float* offset, float* y, int64_t rows, int64_t channels",
    },
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.folded = {}

    def forward(self, x):
        n = self.norm
        held = (n.weight, n.bias, n.running_mean, n.running_var)
        key = tuple(tensor._version for tensor in held)
        if key not in self.folded:
            factor, offset = torch.empty_like(n.weight.data), torch.empty_like(n.weight.data)
            kernels.fold(*held, factor, offset, n.num_features)
            self.folded = {key: (factor, offset)}
        y = torch.empty_like(x)
        kernels.run(x, *self.folded[key], y, *x.shape)
        return y
