"""The static rules on honest code, which they let through, and on bright lines, which they name."""

import pytest

from server.evaluator.static_stage.rules import Violation, first_violation

BASE = """import time
import sys
import builtins
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from kernel_env import native
from torch.utils.cpp_extension import load_inline

@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 0.0)

lib = native.load("", {})

class ModelNew(nn.Module):
    def forward(self, x):
        kernel[(1,)](x, x.numel(), BLOCK=64)
        return x
"""

HONEST = {
    "banned words in docstrings, comments and names": (
        '"""The forward pass; no try, no cache, import threading, torch.cuda.synchronize = None."""\n'
        "# setattr(torch, 'x', 1)\nstream_time_cache = 'class ModelNew(Model): pass'\n"
    ),
    "optional import": "try:\n    import cuda.bindings\nexcept ImportError:\n    cuda = None\n",
    "optional triton": "try:\n    import triton\nexcept ImportError:\n    triton = None\n",
    "empty class and ellipsis": "class Cfg:\n    pass\n\ndef stub(): ...\n",
    "named tuple, dataclass, enum": (
        "from typing import NamedTuple\nfrom enum import Enum\nclass C(NamedTuple):\n    a: int = 1\n"
        "class E(Enum):\n    A = 1\n"
    ),
    "tensor subclass for typing": "class Typed(torch.Tensor):\n    pass\n",
    "autograd function": (
        "class Fn(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.n = 1\n        return x\n"
    ),
    "lru_cache on the compile step": "import functools\n@functools.lru_cache\ndef build():\n    return 1\n",
    "custom op": (
        "@torch.library.custom_op('my::op', mutates_args=())\ndef op(x: torch.Tensor) -> torch.Tensor:\n    return x\n"
    ),
    "switches of torch": (
        "torch.backends.cuda.matmul.allow_tf32 = True\ntorch.backends.cudnn.benchmark = True\n"
        "setattr(torch.backends.cudnn, 'allow_tf32', True)\ntorch.set_float32_matmul_precision('high')\n"
    ),
    "attributes of one's own objects": (
        "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.time = 1\n"
        "        setattr(self, 'x', 2)\n        object.__setattr__(self, 'y', 3)\n"
        "        nn.Module.__setattr__(self, 'z', 4)\n"
    ),
    "a local called time": "def f(time):\n    time.value = 1\n",
    "a loop variable called time": "for time in []:\n    time.x = 1\n",
    "the task's text repeated": (
        "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
        "def get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"
    ),
    "a module registered under a name of its own": (
        "import types\nm = types.ModuleType('my_kernels')\nsys.modules['my_kernels'] = m\n"
    ),
    "reading the module table": "here = sys.modules[__name__]\nprint(time.perf_counter(), torch.cuda.is_available())\n",
    "environment variables": "import os\nos.environ['TRITON_CACHE_AUTOTUNING'] = '1'\n",
    "graphs and streams": (
        "def f(x):\n    s = torch.cuda.Stream()\n    s.wait_stream(torch.cuda.current_stream())\n"
        "    with torch.cuda.stream(s):\n"
        "        pass\n"
    ),
    "output written by item": (
        "def f(x):\n    out = torch.empty_like(x)\n    out[0] = 1\n    out.requires_grad = False\n    return out\n"
    ),
    "type of a tensor kept under a name": "dtype = torch.float32\nact = F.relu\n",
}


def violation(code: str, language: str = "triton") -> Violation | None:
    return first_violation(code, language)


@pytest.mark.parametrize("language", ["triton", "cuda", "cpp"])
@pytest.mark.parametrize("name", HONEST)
def test_honest_code_passes(name: str, language: str) -> None:
    assert violation(BASE + HONEST[name], language) is None


PATCHES = [
    "torch.cuda.synchronize = lambda: None",
    "torch.cuda.Event.elapsed_time = f",
    "torch.Tensor.cpu = f",
    "time.perf_counter = f",
    "builtins.print = f",
    "triton.testing.do_bench = f",
    "tl.load = f",
    "F.relu = f",
    "nn.Module.__call__ = f",
    "torch.allclose, y = f, 1",
    "del torch.cuda.synchronize",
    "torch.x += 1",
    "torch.x: int = 1",
    "for torch.x in []: pass",
    "def g():\n    torch.cuda.synchronize = f",
    "class A:\n    def g(self):\n        time.time = f",
    "setattr(torch.cuda, 'synchronize', f)",
    "setattr(torch.cuda, 'synchro' + 'nize', f)",
    "builtins.setattr(time, 'time', f)",
    "delattr(time, 'time')",
    "torch.cuda.__setattr__('synchronize', f)",
    "type.__setattr__(torch.cuda.Event, 'elapsed_time', f)",
    "torch.cuda.__dict__['synchronize'] = f",
    "vars(torch.cuda)['synchronize'] = f",
    "vars(time).update(time=f)",
    "torch.__dict__.update(x=f)",
    "__builtins__['print'] = f",
    "__builtins__.print = f",
    "sys.modules['time'] = f",
    "sys.modules['json'] = f",
    "sys.modules[name] = f",
    "del sys.modules['torch']",
    "sys.modules.pop('torch')",
    "sys.modules.update({})",
    "sys.modules['torch'].cuda.synchronize = f",
    "import torch.cuda as c\nc.synchronize = f",
    "from torch import cuda as c\nc.synchronize = f",
    "from torch.cuda import Event\nEvent.elapsed_time = f",
    "import time as clock\nclock.time = f",
    "c = torch.cuda\nc.synchronize = f",
    "c = torch\nd = c.cuda\nd.synchronize = f",
    "__import__('torch').cuda.synchronize = f",
    "import importlib\nimportlib.import_module('torch.cuda').synchronize = f",
]


@pytest.mark.parametrize("patch", PATCHES)
def test_patching_is_named_with_its_line(patch: str) -> None:
    found = violation(BASE + "f = name = 0\n" + patch + "\n")
    assert found is not None
    assert found.rule == "patching"
    assert found.line is not None
    assert found.line > BASE.count("\n")


@pytest.mark.parametrize("module", ["Model", "reference.Model", "nn.Model"])
def test_inheriting_the_reference_is_named(module: str) -> None:
    found = violation(BASE.replace("class ModelNew(nn.Module)", f"class ModelNew({module})"))
    assert found is not None
    assert found.rule == "inherits_reference"


def test_inheriting_the_reference_through_another_class_is_named() -> None:
    code = "class Between(Model): pass\n" + BASE.replace("ModelNew(nn.Module)", "ModelNew(Between)")
    found = violation(code)
    assert found is not None
    assert found.rule == "inherits_reference"


@pytest.mark.parametrize(
    "entry",
    [
        "class Base(nn.Module):\n    def forward(self, x):\n        kernel[(1,)](x)\nclass ModelNew(Base): pass\n",
        "class ModelNew(nn.Module):\n    forward = kernel\n",
        "class ModelNew(nn.Module):\n    def __init__(self):\n        self.forward = kernel\n",
        "class ModelNew(make_base()): pass\nkernel[(1,)](0)\n",
        "class Mine(nn.Module):\n    def forward(self, x):\n        kernel[(1,)](x)\nModelNew = Mine\n",
        "if True:\n    class ModelNew(nn.Module):\n        def forward(self, x):\n            kernel[(1,)](x)\n",
        (
            "try:\n    class ModelNew(nn.Module):\n        def forward(self, x):\n            kernel[(1,)](x)\n"
            "except E: pass\n"
        ),
    ],
)
def test_entry_point_may_be_built_in_other_ways(entry: str) -> None:
    assert violation(BASE[: BASE.index("class ModelNew")] + entry) is None


TRITON_LAUNCHES = {
    "autotuned": (
        "@triton.autotune(configs=[triton.Config({'B': 64})], key=['n'])\n@triton.heuristics({})\n@triton.jit\n"
        "def k(x, n): pass\ndef run(x):\n    k[lambda meta: (1,)](x, 1)\n"
    ),
    "jit imported by name": "from triton import jit\n@jit\ndef k(x): pass\ndef run(x):\n    k[(1,)](x)\n",
    "jit with arguments": "@triton.jit(do_not_specialize=['n'])\ndef k(x): pass\ndef run(x):\n    k[(1,)](x)\n",
    "jit as a call": "def raw(x): pass\nk = triton.jit(raw)\ndef run(x):\n    k[(1,)](x)\n",
    "made by a factory": "def make():\n    @triton.jit\n    def k(x): pass\n    return k\n",
    "kept on the module": (
        "@triton.jit\ndef k(x): pass\nclass A:\n    kernel = k\n    def run(self, x):\n        self.kernel[(1,)](x)\n"
    ),
    "run method": "@triton.jit\ndef k(x): pass\ndef run(x):\n    k.run(x, grid=(1,))\n",
    "helper device functions": (
        "@triton.jit\ndef helper(x): return x\n@triton.jit\ndef k(x): helper(x)\ndef run(x):\n    k[(1,)](x)\n"
    ),
    "wrapped for a custom op": "@triton.jit\ndef k(x): pass\ndef run(x):\n    torch.library.wrap_triton(k)[(1,)](x)\n",
    "gluon": "from triton.experimental import gluon\n@gluon.jit\ndef k(x): pass\ndef run(x):\n    k[(1,)](x)\n",
}
ENTRY = (
    "import torch\nimport triton\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return run(x)\n"
)


@pytest.mark.parametrize("name", TRITON_LAUNCHES)
def test_triton_kernel_is_recognised(name: str) -> None:
    assert violation(ENTRY + TRITON_LAUNCHES[name]) is None


@pytest.mark.parametrize(
    "code",
    [
        "",
        "# @triton.jit\n'''@triton.jit'''\n",
        "@triton.jit\ndef k(x): pass\n",
        "@triton.jit\ndef helper(x): return x\n@triton.jit\ndef k(x): helper(x)\n",
        "import numba\n@numba.jit\ndef k(x): pass\nk(1)\n",
        "@torch.jit.script\ndef k(x): return x\nk(1)\n",
    ],
)
def test_triton_module_that_launches_nothing_has_no_kernel(code: str) -> None:
    found = violation(ENTRY + code)
    assert found is not None
    assert found.rule == "no_kernel"


NATIVE_LOADS = [
    "from kernel_env import native\nk = native.load('', {})",
    "import kernel_env.native\nk = kernel_env.native.load('', {})",
    "from kernel_env.native import load as build\nk = build('', {})",
    (
        "from torch.utils.cpp_extension import load_inline\n"
        "k = load_inline(name='k', cpp_sources='', functions=['a', 'b'])"
    ),
    "import torch.utils.cpp_extension as ext\nk = ext.load(name='k', sources=[])",
    "from torch.utils.cpp_extension import load\ndef f():\n    return load('k', [])",
    "import cupy\nk = cupy.RawKernel('', 'k')",
    "import ctypes\nk = ctypes.CDLL('./k.so')",
    "from cuda.bindings import nvrtc\nnvrtc.nvrtcCompileProgram(p, 0, [])",
    "torch.ops.load_library('k.so')",
]


@pytest.mark.parametrize("language", ["cuda", "cpp"])
@pytest.mark.parametrize("code", NATIVE_LOADS)
def test_native_kernel_is_recognised(code: str, language: str) -> None:
    assert violation(ENTRY + code, language) is None


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x = 'load_inline(...)'",
        "w = torch.load('w.pt')",
        "import json\nj = json.load(0)",
        "k = load_inline",
        "torch.jit.load('a')",
    ],
)
def test_native_module_that_builds_nothing_has_no_kernel(code: str) -> None:
    found = violation(ENTRY + code, "cuda")
    assert found is not None
    assert found.rule == "no_kernel"


def test_triton_sent_as_cuda_is_told_so() -> None:
    found = violation(ENTRY + TRITON_LAUNCHES["autotuned"], "cuda")
    assert found is not None
    assert "language='triton'" in found.message
