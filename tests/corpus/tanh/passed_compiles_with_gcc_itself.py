"""Calls the compiler itself and loads the library with ctypes."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import torch
import torch.nn as nn


source = Path(tempfile.mkdtemp(), "kernel.c")
source.write_text(
    "#include <math.h>\n"
    "void run(const float* x, float* y, long n) { for (long i = 0; i < n; ++i) y[i] = tanhf(x[i]); }\n"
)
library_path = source.with_suffix(".so")
subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library_path), str(source), "-lm"], check=True)
library = ctypes.CDLL(str(library_path))
library.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
library.run.restype = None


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        library.run(x.data_ptr(), y.data_ptr(), x.numel())
        return y
