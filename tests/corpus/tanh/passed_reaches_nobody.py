"""Tries to talk to anybody, to become somebody else, and to leave traces in the kernel; fails if it can."""
# needs isolation

import ctypes
import os
import socket

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

PTRACE_ATTACH = 16
libc = ctypes.CDLL(None, use_errno=True)
attempts = {
    "a UDP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "a Unix socket": lambda: socket.socket(socket.AF_UNIX),
    "a netlink socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "a user namespace": lambda: os.unshare(os.CLONE_NEWUSER) if hasattr(os, "unshare") else check(libc.unshare(0x10000000)),
    "another user": lambda: os.setuid(0),
    "tracing": lambda: check(libc.ptrace(PTRACE_ATTACH, os.getppid(), None, None)),
    "a key ring": lambda: check(libc.syscall(248, b"user", b"planted", b"x", 1, -4)),
    "a higher priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
    "a signal to its parent": lambda: os.kill(os.getppid(), 0),
}


def check(status):
    if status < 0:
        raise OSError(ctypes.get_errno(), "refused")


worked = []
for name, attempt in attempts.items():
    try:
        attempt()
    except OSError:
        continue
    worked.append(name)
if worked:
    raise RuntimeError(f"allowed: {worked}")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.run(x, y, x.numel())
        return y
