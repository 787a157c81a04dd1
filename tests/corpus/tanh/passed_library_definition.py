"""The kernel is registered through torch.library, in the older form."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
""",
    {"run": "const float* x, float* y, int64_t n"},
)


library = torch.library.Library("submission_library", "DEF")
library.define("tanh_into(Tensor x, Tensor(a!) y) -> ()")


def tanh_into(x, y):
    kernels.run(x, y, x.numel())


library.impl("tanh_into", tanh_into, "CPU")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        torch.ops.submission_library.tanh_into(x, y)
        return y
