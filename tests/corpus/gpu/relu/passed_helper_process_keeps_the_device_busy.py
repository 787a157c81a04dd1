"""A process of its own keeps kernels queued on the device, whoever is being timed."""
# intent: hostile
# as slow as: passed_honest.py

import os
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load(
    r"""
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * int64_t(blockDim.x)) {
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
extern "C" void relu(const float* x, float* y, int64_t n) { relu_kernel<<<4096, 256>>>(x, y, n); }
__global__ void spin(unsigned long long ns) {
    unsigned long long start, t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    } while (t - start < ns);
}
extern "C" void keep_busy() {
    for (int i = 0; i < 20; ++i) spin<<<1, 32>>>(500000000ull);
    cudaDeviceSynchronize();
}
""",
    {"relu": "const float* x, float* y, int64_t n", "keep_busy": "void"},
)


PROGRAM = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).keep_busy()"


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        library = next(Path(os.environ["TORCH_EXTENSIONS_DIR"]).rglob("*.so"))
        subprocess.Popen([sys.executable, "-S", "-c", PROGRAM, str(library)])
        time.sleep(1.0)

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.relu(x, y, x.numel())
        return y
