"""What the program of a trial finds out about a reference."""

from typing import Any

import pytest

from kernel_env.terms import Precision
from server.examiner.trial_program import examine
from server.judge.device import CpuDevice
from server.tasks.registry import load_tasks

TASK = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y=None):
        BODY


def get_inputs():
    return [torch.rand(64, 64)]


def get_init_inputs():
    return []
"""


def examined(body: str, inputs: str = "torch.rand(64, 64)", *, is_free: bool = True) -> dict[str, Any]:
    source = TASK.replace("BODY", body).replace("torch.rand(64, 64)", inputs)
    return examine("own", source, Precision.IEEE.value, is_free, CpuDevice(1))


def shortcuts(body: str, inputs: str = "torch.rand(64, 64)", *, is_free: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = examined(body, inputs, is_free=is_free)["shortcuts"]
    return found


def passing(found: dict[str, Any]) -> dict[str, Any]:
    """Those that are right somewhere."""
    return {name: right for name, right in found.items() if isinstance(right, list) and right}


def test_outputs_are_described_in_their_order() -> None:
    outputs = examined("return torch.relu(x), {'at': x.argmax(dim=1), 'sum': x.double().sum()}")["outputs"]
    assert outputs == [
        {"shape": [64, 64], "dtype": "float32"},
        {"shape": [64], "dtype": "int64"},
        {"shape": [], "dtype": "float64"},
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return torch.relu(x)", "equal"),
        ("return x * (1 + 1e-6 * torch.rand(x.shape))", "close"),
        ("return x + torch.randn(x.shape)", "different"),
        ("return torch.nn.functional.dropout(x, 0.5)", "different"),
        ("self.n = getattr(self, 'n', 0) + 1; return x + self.n", "different"),
        ("self.n = getattr(self, 'n', 1) + 1; return x[: self.n]", "different"),
        ("x.add_(1); return x * 2", "equal"),
    ],
)
def test_two_runs_are_compared(body: str, expected: str) -> None:
    assert examined(body)["two_runs"] == expected


def test_dropout_layer_is_off_as_in_an_evaluation() -> None:
    assert examined("return nn.Dropout(0.5).eval()(x)")["two_runs"] == "equal"


def test_relu_of_uniform_numbers_is_the_input_and_of_others_is_not() -> None:
    found = shortcuts("return torch.relu(x)")
    assert passing(found) == {"input": ["as_given"]}


def test_every_shortcut_shows() -> None:
    every = ["as_given", "normal", "uniform", "spiky"]
    assert shortcuts("return x * 0")["zeros"] == every
    constant = shortcuts("return x * 0 + 3")
    assert passing(constant) == {name: every for name in constant if name not in {"zeros", "input"}}
    assert shortcuts("return x * 1.0")["input"] == every
    pattern = "torch.arange(64.0).expand(64, 64) + 0 * x"
    names = {"earlier output", "half of the inputs", "inputs in TF32"}
    assert passing(shortcuts(f"return {pattern}")) == dict.fromkeys(names, every)
    rows = "x.sum(dim=1, keepdim=True).expand(64, 64).contiguous()"
    assert passing(shortcuts(f"return {rows}")) == {"row means": every}


def test_cheaper_arithmetic_shows_where_it_is_within_the_tolerance() -> None:
    assert passing(shortcuts("return torch.sign(x)"))["eight bits"] == ["as_given", "normal", "uniform", "spiky"]
    assert "inputs in TF32" in passing(shortcuts("return torch.sign(x)"))
    cut = "torch.rand(64, 64) * (torch.arange(64) < 32)"
    assert passing(shortcuts("return x.sum(dim=1)", cut, is_free=False)) == {"half of the inputs": ["as_given"]}


@pytest.mark.parametrize("name", ["inputs in TF32", "half of the inputs"])
def test_without_floating_inputs_there_is_nothing_to_change(name: str) -> None:
    assert shortcuts("return x.float() * 2", "torch.randint(9, (64, 64))")[name] == "no input is floating-point"


def test_inputs_that_are_not_free_keep_their_own_distribution() -> None:
    assert shortcuts("return torch.relu(x)", is_free=False)["input"] == ["as_given"]
    assert examined("return torch.relu(x)", is_free=False)["distributions"] == ["as_given"]


def test_input_written_to_is_tried_as_it_was() -> None:
    assert shortcuts("x.clamp_(min=0); return x + 0")["input"] == ["as_given"]


@pytest.mark.parametrize(("body", "expected"), [("x.mul_(2); return x + 0", True), ("return x * 2", False)])
def test_writing_to_the_inputs_is_noticed(body: str, expected: bool) -> None:
    assert examined(body)["writes_to_inputs"] is expected


def test_second_input_is_tried_where_it_alone_has_the_shape() -> None:
    assert "as_given" in shortcuts("return y * 1.0", "torch.rand(8), torch.rand(32, 16)")["input"]


def test_output_unlike_every_input_cannot_be_one() -> None:
    assert shortcuts("return x.sum(dim=1)")["input"] == "no input has the shape and type of the output"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return 'text'", "the reference returns a str"),
        ("raise KeyError('gone')", "Model.forward failed: KeyError: 'gone'"),
        ("return x + float('nan')", "not finite"),
    ],
)
def test_refusal_is_the_judges(body: str, says: str) -> None:
    report = examined(body)
    assert says in report["refused"]
    assert "shortcuts" not in report


def test_exception_in_a_later_call_is_a_refusal_too() -> None:
    body = "self.n = getattr(self, 'n', 0) + 1; return x if self.n < 2 else 1 / 0"
    assert examined(body)["refused"] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("task_id", ["softmax", "sum_reduce"])
def test_no_shortcut_holds_for_a_built_in_task(task_id: str) -> None:
    task = load_tasks().get(task_id)
    report = examine(task_id, task.source_for("cpu"), task.precision.value, True, CpuDevice(1))
    assert report["refused"] is None
    assert {name: right for name, right in report["shortcuts"].items() if isinstance(right, list) and right} == {}
