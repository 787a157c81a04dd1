"""Repeats the task at its top, as many models do."""

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


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


def get_inputs():
    return [torch.zeros(2, 2)]


def get_init_inputs():
    return []


class ModelNew(nn.Module):
    def __init__(self, *args, **kwargs):
        super(ModelNew, self).__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y


if __name__ == "__main__":
    model = ModelNew(*get_init_inputs())
    torch.testing.assert_close(model(*get_inputs()), Model()(*get_inputs()))
