"""Triton's autotuner works in the interpreter, where Triton has no driver to ask."""

import subprocess
import sys

import pytest

from server.candidate.interpreted import InterpreterDriver

AUTOTUNES = """
import torch, triton, triton.language as tl
from server.candidate.interpreted import enable_autotuning

enable_autotuning()

@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

x = torch.arange(100.0)
y = torch.empty_like(x)
copy[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100)
assert torch.equal(x, y)
print(copy.best_config.kwargs["BLOCK"])
"""


def test_autotuner_chooses_a_configuration() -> None:
    environment = {"TRITON_INTERPRET": "1", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    command = [sys.executable, "-c", AUTOTUNES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() in {"16", "64"}, done.stderr


def test_every_quantile_has_a_time_and_the_call_is_made_once() -> None:
    calls = []
    times = InterpreterDriver().get_benchmarker()(lambda: calls.append(1), quantiles=(0.5, 0.2, 0.8))
    assert len(times) == 3
    assert min(times) >= 0.0
    assert calls == [1]


def test_questions_about_a_device_raise_as_without_a_driver() -> None:
    with pytest.raises(RuntimeError, match="no device"):
        InterpreterDriver().get_current_target()
