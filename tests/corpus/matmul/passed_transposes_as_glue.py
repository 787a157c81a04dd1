"""Brings the second factor into the order the kernel wants, by views and contiguous()."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void run(const float* a, const float* bt, float* c, int64_t m, int64_t k, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float lanes[8] = {};
            int64_t p = 0;
            for (; p + 8 <= k; p += 8)
                for (int64_t l = 0; l < 8; ++l) lanes[l] += a[i * k + p + l] * bt[j * stride + p + l];
            float total = 0.0f;
            for (; p < k; ++p) total += a[i * k + p] * bt[j * stride + p];
            for (float lane : lanes) total += lane;
            c[i * n + j] = total;
        }
}
""",
    {"run": "const float* a, const float* bt, float* c, int64_t m, int64_t k, int64_t n, int64_t stride"},
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        turned = b.permute(1, 0).contiguous()
        c = torch.empty(m * turned.size(0), dtype=a.dtype)
        kernels.run(a, turned, c, m, k, turned.size(0), turned.stride(0))
        return c.view(m, -1)
