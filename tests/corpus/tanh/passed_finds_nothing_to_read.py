"""Looks for seeds and for other submissions; fails if it finds anything."""
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

found = []


def look(path):
    try:
        if path.is_dir():
            found.extend(str(inner) for inner in path.iterdir())
        else:
            with path.open("rb") as file:
                if file.read(16):
                    found.append(str(path))
    except OSError:
        return


parent, scratch = Path(f"/proc/{os.getppid()}"), Path.cwd()
for place in (
    *(parent / name for name in ("environ", "mem", "maps", "fd", "root", "cwd")),
    *(scratch.parent, scratch.parent / "logs", scratch.parent.parent, Path("/tmp"), Path("/root"), Path("/home")),
    *(Path(name) for name in ("/etc/shadow", "/dev/mem", "/dev/kmsg", "/dev/shm", "/proc/kcore", "/sys/kernel/debug")),
):
    look(place)
if found:
    raise RuntimeError(f"readable: {found}")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
