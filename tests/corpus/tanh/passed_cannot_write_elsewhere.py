"""Tries to write outside of its own directory; fails if it can."""
# needs isolation

import os
from pathlib import Path

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

for folder in ("/tmp", "/var/tmp", "/dev/shm", "/etc", "/root", str(Path.cwd().parent), torch.__path__[0]):
    try:
        Path(folder, "planted").write_text("x")
        Path(folder, "planted").unlink()
    except OSError:
        continue
    raise RuntimeError(f"written: {folder}")
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", f"/proc/{os.getppid()}/oom_score_adj"):
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        continue
    raise RuntimeError(f"opened: {path}")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
