"""Vector instructions by hand, as on a GPU inline assembly."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <immintrin.h>
extern "C" void run(const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i) {
        const float* from = x + i * columns;
        float* to = y + i * columns;
        int64_t j = 0;
        for (; j + 4 <= columns; j += 4) {
            const __m128 product = _mm_mul_ps(_mm_loadu_ps(from + j), _mm_loadu_ps(w + j));
            _mm_stream_ps(to + j, _mm_add_ps(product, _mm_loadu_ps(b + j)));
        }
        for (; j < columns; ++j) to[j] = from[j] * w[j] + b[j];
        asm volatile("" ::: "memory");
    }
    _mm_sfence();
}
""",
    {"run": "const float* x, const float* w, const float* b, float* y, int64_t rows, int64_t columns"},
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, self.weight, self.bias, y, *x.shape)
        return y
