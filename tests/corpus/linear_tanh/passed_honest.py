"""Product, bias and activation in one kernel."""

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    """
#include <cmath>
#include <vector>
extern "C" void linear_tanh(const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t width) {
    std::vector<float> turned(width * width);
    for (int64_t i = 0; i < width; ++i)
        for (int64_t k = 0; k < width; ++k) turned[k * width + i] = w[i * width + k];
    for (int64_t r = 0; r < rows; ++r) {
        float* out = y + r * width;
        for (int64_t i = 0; i < width; ++i) out[i] = b[i];
        for (int64_t k = 0; k < width; ++k) {
            const float factor = x[r * width + k];
            const float* line = turned.data() + k * width;
            for (int64_t i = 0; i < width; ++i) out[i] += factor * line[i];
        }
        for (int64_t i = 0; i < width; ++i) out[i] = std::tanh(out[i]);
    }
}
""",
    {"linear_tanh": "const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t width"},
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.linear_tanh(x, self.linear.weight, self.linear.bias, y, *x.shape)
        return y
