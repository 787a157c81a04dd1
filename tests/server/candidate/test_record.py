"""Operators are recorded however they are spelled, and cheaply."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from server.candidate.record import OperatorRecord

ROOT = Path(__file__).parents[3]


def test_every_spelling_of_an_operator_is_seen() -> None:
    x = torch.ones(4, 4)
    spellings: tuple[Callable[[], object], ...] = (
        lambda: torch.tanh(x),
        x.tanh,
        lambda: getattr(torch, "ta" + "nh")(x),
        lambda: torch.ops.aten.tanh(x),
        lambda: torch.tanh(x, out=torch.empty_like(x)),
        lambda: torch.nn.Tanh()(x),
    )
    for number, spelling in enumerate(spellings):
        with OperatorRecord() as record:
            spelling()
        assert any(name.startswith("aten.tanh.") for name in record.names), number


def test_results_are_those_of_the_operators() -> None:
    x = torch.randn(8)
    with OperatorRecord():
        y = (x * 2).relu()
    assert torch.equal(y, torch.relu(x * 2))


def test_recording_imports_no_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from server.candidate.record import OperatorRecord\n"
        "with OperatorRecord():\n    torch.tanh(torch.ones(2))\n"
        "assert not {'torch._inductor', 'sympy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
