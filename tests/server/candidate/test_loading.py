"""How a submission is imported and constructed, and what is said when that fails."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from server.candidate.loading import (
    MODULE_NAME,
    CandidateFailure,
    describe,
    dtype_of,
    failure_of,
    load_model,
)
from server.protocol import DTYPES, Failure

Load = Callable[..., nn.Module]
HEAD = "import torch\nclass ModelNew(torch.nn.Module):\n"


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "submission.py"
    sys.modules.pop(MODULE_NAME, None)


@pytest.fixture
def load(path: Path) -> Load:
    def write_and_load(source: str, *init: object) -> nn.Module:
        path.write_text(source)
        return load_model(str(path), "ModelNew", init, "cpu")

    return write_and_load


def failure(load: Load, source: str, *init: object) -> CandidateFailure:
    with pytest.raises(CandidateFailure) as raised:
        load(source, *init)
    return raised.value


def test_a_submission_is_constructed_with_the_references_arguments(load: Load) -> None:
    model = load(HEAD + "    def __init__(self, a, b):\n        super().__init__()\n        self.sum = a + b\n", 2, 3)
    assert model.sum == 5
    assert type(model).__module__ == MODULE_NAME


def test_its_source_is_found_as_triton_needs_it(load: Load) -> None:
    import inspect

    model = load(HEAD + "    def forward(self, x):\n        return x\n")
    assert inspect.getsource(type(model)).startswith("class ModelNew")


@pytest.mark.parametrize(
    ("source", "kind", "text"),
    [
        ("raise SystemExit(3)\n", Failure.EXCEPTION, "SystemExit: 3\n  line 1, in <module>: raise SystemExit(3)"),
        ("import os\nraise KeyboardInterrupt\n", Failure.EXCEPTION, "KeyboardInterrupt\n  line 2"),
        (
            "x = 1\ny = undefined\n",
            Failure.EXCEPTION,
            "NameError: name 'undefined' is not defined\n  line 2, in <module>",
        ),
        ("def f(:\n", Failure.EXCEPTION, "SyntaxError"),
        ("raise MemoryError\n", Failure.OUT_OF_MEMORY, "MemoryError"),
        ("x = 1\n", Failure.CONSTRUCTOR, "the module defines no class ModelNew"),
        ("ModelNew = 3\n", Failure.CONSTRUCTOR, "the module defines no class ModelNew"),
        ("class ModelNew: pass\n", Failure.CONSTRUCTOR, "ModelNew must be a torch.nn.Module, got ModelNew"),
        ("def ModelNew(): return 3\n", Failure.CONSTRUCTOR, "ModelNew must be a torch.nn.Module, got int"),
        (
            HEAD + "    def __init__(self, n): super().__init__()\n",
            Failure.CONSTRUCTOR,
            "missing 1 required positional",
        ),
        (HEAD + "    def __init__(self): exit(1)\n", Failure.CONSTRUCTOR, "failed: SystemExit: 1"),
        (HEAD + "    def __init__(self): raise MemoryError\n", Failure.OUT_OF_MEMORY, "MemoryError"),
        (
            "from kernel_env.native import NativeCompileError\nraise NativeCompileError('a.cu:3: expected ;')\n",
            Failure.COMPILATION,
            "NativeCompileError: a.cu:3: expected ;",
        ),
        (
            "def ModelNew():\n    raise RuntimeError(\"Error building extension 'k': ninja\")\n",
            Failure.COMPILATION,
            "Error building extension",
        ),
    ],
)
def test_every_way_to_fail_has_its_kind_and_text(load: Load, source: str, kind: Failure, text: str) -> None:
    failed = failure(load, source)
    assert failed.failure is kind
    assert text in failed.text
    assert str(failed) == failed.text


def test_a_constructor_that_does_not_take_the_arguments_is_told_which_call_failed(load: Load) -> None:
    failed = failure(load, HEAD + "    def __init__(self): super().__init__()\n", 1, 2)
    assert failed.failure is Failure.CONSTRUCTOR
    assert failed.text.startswith("ModelNew(*get_init_inputs()) failed: TypeError")


def test_an_exception_shows_the_lines_of_the_submission_and_no_other(load: Load) -> None:
    source = HEAD + "    def __init__(self):\n        super().__init__()\n        self.go()\n    def go(self):\n"
    source += "        torch.zeros(2).view(3)\n"
    text = failure(load, source).text
    assert "  line 5, in __init__: self.go()" in text
    assert "  line 7, in go: torch.zeros(2).view(3)" in text
    assert text.count("  line ") == 2


def test_no_directory_of_the_host_is_shown(load: Load, path: Path) -> None:
    text = failure(load, f"open({str(path.parent / 'missing.txt')!r})\n").text
    assert "missing.txt" in text
    assert str(path.parent) not in text
    assert "/" not in text.splitlines()[0]


@pytest.mark.parametrize("kept", ["1/2 of 3 / 4", "(M/N)", "a//b", "64/128 threads"])
def test_divisions_are_no_directories(kept: str) -> None:
    assert describe(ValueError(kept), "x.py") == f"ValueError: {kept}"


class Hostile(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


class Liar(Exception):
    def __str__(self) -> str:
        return 3  # type: ignore[return-value]  # noqa: PLE0307 - it lies


class Endless(Exception):
    def __str__(self) -> str:
        return str(self)


@pytest.mark.parametrize("error", [Hostile(), Liar(), Endless()])
def test_a_hostile_text_leaves_the_type(error: Exception) -> None:
    failed = failure_of(error, "submission.py")
    assert (failed.failure, failed.text) == (Failure.EXCEPTION, type(error).__name__)


def test_a_hostile_exception_during_import_is_reported_too(load: Load) -> None:
    source = "class E(BaseException):\n    def __str__(self): raise SystemExit(0)\nraise E\n"
    assert failure(load, source).text.startswith("E\n  line 3")


def test_long_lines_and_deep_recursion_are_cut() -> None:
    assert len(describe(ValueError("x" * 10**6), "x.py")) < 3000


def test_only_the_innermost_lines_of_a_recursion_are_kept(load: Load) -> None:
    text = failure(load, "def f(n): return f(n + 1)\nf(0)\n").text
    assert text.startswith("RecursionError")
    assert text.count("  line ") == 8


def test_out_of_memory_of_torch_is_known() -> None:
    assert failure_of(torch.OutOfMemoryError("no"), "x.py").failure is Failure.OUT_OF_MEMORY


def test_an_error_of_tritons_compiler_is_a_compilation_error() -> None:
    error = type("CompilationError", (Exception,), {"__module__": "triton.compiler.errors"})("at 3:4")
    assert failure_of(error, "x.py").failure is Failure.COMPILATION


def test_every_type_on_the_wire_is_one_of_torch() -> None:
    assert {dtype_of(name) for name in DTYPES} == {getattr(torch, name) for name in DTYPES}
    with pytest.raises(ValueError, match="unknown element type"):
        dtype_of("save")
