"""Threads add to a zeroed result in whatever order they come: last bits differ from run to run."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <atomic>
#include <thread>
#include <vector>
static void add(float* place, float value) {
    std::atomic_ref<float> there(*place);
    float seen = there.load(std::memory_order_relaxed);
    while (!there.compare_exchange_weak(seen, seen + value, std::memory_order_relaxed)) {}
}
extern "C" void run(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
    auto part = [=](int64_t begin, int64_t end) {
        std::vector<float> row(n);
        for (int64_t i = 0; i < m; ++i) {
            std::fill(row.begin(), row.end(), 0.0f);
            for (int64_t p = begin; p < end; ++p)
                for (int64_t j = 0; j < n; ++j) row[j] += a[i * k + p] * b[p * n + j];
            for (int64_t j = 0; j < n; ++j) add(c + i * n + j, row[j]);
        }
    };
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 3; ++t) threads.emplace_back(part, t * k / 3, (t + 1) * k / 3);
    for (auto& thread : threads) thread.join();
}
""",
    {"run": "const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n"},
    flags=("-std=c++20", "-pthread"),
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty((a.shape[0], b.shape[1]))
        c.zero_()
        kernels.run(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
