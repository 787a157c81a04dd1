"""Own compiler flags, templates, lambdas and several functions in one source."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <algorithm>
#include <array>
#include <cmath>
namespace {
int64_t expected = 0;
template <int Width, typename Map>
void apply(const float* __restrict__ x, float* __restrict__ y, int64_t n, Map map) {
    std::array<float, Width> block;
    for (int64_t i = 0; i < n; i += Width) {
        const int64_t count = std::min<int64_t>(Width, n - i);
        std::transform(x + i, x + i + count, block.begin(), map);  // "//" in a string is no comment
        std::copy_n(block.begin(), count, y + i);
    }
}
}  // namespace
extern "C" void prepare(int64_t n) { expected = n; }
extern "C" void run(const float* x, float* y, int64_t n) {
    if (n != expected) __builtin_trap();
    apply<64>(x, y, n, [](float value) { return std::tanh(value); });
}
""",
    {"prepare": "int64_t n", "run": "const float* x, float* y, int64_t n"},
    flags=("-O3", "-march=native", "-funroll-loops", "-fno-math-errno"),
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.prepare(x.numel())
        kernels.run(x, y, x.numel())
        return y
