"""Operators are recorded however they are spelled, and cheaply."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from server.candidate.record import OperatorRecord, profiled
from server.operators import arithmetic

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


def in_custom_op(x: torch.Tensor) -> object:
    @torch.library.custom_op("record_for_tests::hidden", mutates_args=())
    def hidden(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)

    return hidden(x)


def in_another_thread(x: torch.Tensor) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.tanh, x).result()


def in_an_older_thread(x: torch.Tensor) -> object:
    return POOL.submit(torch.tanh, x).result()


POOL = ThreadPoolExecutor(1)
POOL.submit(int).result()


@pytest.mark.parametrize("call", [in_custom_op, in_another_thread, in_an_older_thread])
def test_operators_inside_of_others_and_in_other_threads_are_seen(call: Callable[[torch.Tensor], object]) -> None:
    assert "aten.tanh" in profiled(lambda: call(torch.ones(4, 4)))


def test_operators_that_only_call_others_are_left_out() -> None:
    x = torch.ones(4, 4)
    names = profiled(lambda: torch.empty_like(x).reshape(2, 8).to(torch.float64).contiguous().expand(3, 2, 8))
    assert arithmetic(names) == ()
    assert "aten._to_copy" in names


@pytest.mark.parametrize(
    "glue",
    [
        lambda x: x.repeat(3, 1),
        lambda x: torch.nn.functional.pad(x, (1, 2)),
        lambda x: torch.stack([x, x.t().contiguous()]),
        lambda x: x.to(torch.bfloat16).to(memory_format=torch.contiguous_format).roll(0),
        lambda x: torch.zeros_like(x).copy_(x.flatten().view_as(x)),
    ],
)
def test_what_glue_does_inside_of_itself_is_glue(glue: Callable[[torch.Tensor], object]) -> None:
    x = torch.ones(4, 4)
    assert "aten.add" not in profiled(lambda: glue(x))
    assert arithmetic(profiled(lambda: (glue(x), torch.add(x, x)))) == ("aten.add",)


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
