"""Partial products in a workspace kept between calls, then a second kernel adds them up."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void partial(const float* a, const float* b, float* parts, int64_t m, int64_t k, int64_t n, int64_t split) {
    const int64_t length = (k + split - 1) / split;
    for (int64_t s = 0; s < split; ++s)
        for (int64_t i = 0; i < m; ++i) {
            float* row = parts + (s * m + i) * n;
            for (int64_t j = 0; j < n; ++j) row[j] = 0.0f;
            for (int64_t p = s * length; p < k && p < (s + 1) * length; ++p)
                for (int64_t j = 0; j < n; ++j) row[j] += a[i * k + p] * b[p * n + j];
        }
}
extern "C" void reduce(const float* parts, float* c, int64_t count, int64_t split) {
    for (int64_t i = 0; i < count; ++i) {
        float total = 0.0f;
        for (int64_t s = 0; s < split; ++s) total += parts[s * count + i];
        c[i] = total;
    }
}
""",
    {
        "partial": "const float* a, const float* b, float* parts, int64_t m, int64_t k, int64_t n, int64_t split",
        "reduce": "const float* parts, float* c, int64_t count, int64_t split",
    },
)


SPLIT = 4
workspaces = {}


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        if (m, n) not in workspaces:
            workspaces[m, n] = torch.empty((SPLIT, m, n), dtype=a.dtype)
        parts = workspaces[m, n]
        c = torch.empty((m, n), dtype=a.dtype)
        kernels.partial(a, b, parts, m, k, n, SPLIT)
        kernels.reduce(parts, c, m * n, SPLIT)
        return c
