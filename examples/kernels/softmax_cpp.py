"""Softmax over rows in C++: maximum, exponentials and scaling while the row stays in cache."""

import torch
import torch.nn as nn

from kernel_env import native

SOURCE = r"""
#include <cmath>

// e^x to about 1 ulp for x in [-87, 88]; branch-free, so that the compiler turns loops over it into vector code.
static inline float exp_poly(float x) {
    x = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
    const float n = std::nearbyint(x * 1.44269504f);
    const float r = std::fma(n, -1.42860677e-6f, std::fma(n, -0.693145752f, x));
    float p = 1.3888889e-3f;
    p = std::fma(p, r, 8.3333333e-3f);
    p = std::fma(p, r, 4.1666667e-2f);
    p = std::fma(p, r, 1.6666667e-1f);
    p = std::fma(p, r, 0.5f);
    p = std::fma(p, r, 1.0f);
    p = std::fma(p, r, 1.0f);
    const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
    float power;
    __builtin_memcpy(&power, &bits, sizeof power);
    return p * power;
}

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    #pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * columns;
        float* to = y + row * columns;
        float largest = from[0];
        #pragma omp simd reduction(max : largest)
        for (int64_t i = 0; i < columns; ++i) largest = from[i] > largest ? from[i] : largest;
        float total = 0.0f;
        #pragma omp simd reduction(+ : total)
        for (int64_t i = 0; i < columns; ++i) {
            to[i] = exp_poly(from[i] - largest);
            total += to[i];
        }
        const float scale = 1.0f / total;
        #pragma omp simd
        for (int64_t i = 0; i < columns; ++i) to[i] *= scale;
    }
}
"""

kernels = native.load(
    SOURCE,
    {"softmax": "const float* x, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
