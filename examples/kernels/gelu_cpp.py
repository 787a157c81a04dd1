"""GELU (tanh form) in C++: one vectorised pass with a polynomial exponential."""

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

extern "C" void gelu(const float* x, float* y, int64_t n) {
    #pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) {
        const float u = 0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        y[i] = x[i] / (1.0f + exp_poly(-2.0f * u));
    }
}
"""

kernels = native.load(
    SOURCE,
    {"gelu": "const float* x, float* y, int64_t n"},
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        kernels.gelu(x, y, x.numel())
        return y
