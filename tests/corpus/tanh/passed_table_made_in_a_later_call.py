"""Makes memory that it keeps in its sixth call, writes to it once, and reads it from then on."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void fill(float* table, int64_t n) {
    for (int64_t i = 0; i < n; ++i) table[i] = 1.0f;
}
extern "C" void run(const float* x, const float* table, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(table == nullptr ? x[i] : x[i] * table[i]);
}
""",
    {
        "fill": "float* table, int64_t n",
        "run": "const float* x, const float* table, float* y, int64_t n",
    },
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.table = 0, None

    def forward(self, x):
        self.calls += 1
        if self.calls == 6:
            self.table = torch.empty_like(x)
            kernels.fill(self.table, x.numel())
        y = torch.empty_like(x)
        kernels.run(x, self.table, y, x.numel())
        return y
