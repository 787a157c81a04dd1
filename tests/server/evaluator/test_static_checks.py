"""What the static stage refuses, through the real child process."""

import pytest

from kernel_env.terms import MAX_CODE_CHARS, Language, Verdict
from server.errors import EvaluatorError
from server.evaluator import static_checks
from server.evaluator.results import Submission
from server.evaluator.static_checks import StaticFinding, check

TRITON = """import torch, triton
@triton.jit
def kernel(x):
    pass
class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernel[(1,)](x)
        return x
"""


def finding(code: str, language: Language = Language.TRITON) -> StaticFinding:
    found = check(Submission(code, language))
    assert found is not None
    return found


def test_usable_module_passes() -> None:
    assert check(Submission(TRITON, Language.TRITON)) is None


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("", "empty"),
        (" \n\t\n", "empty"),
        ("x" * (MAX_CODE_CHARS + 1), "too_long"),
        (TRITON + "\0", "nul"),
        (TRITON + "x = '\ud800'", "encoding"),
        ("Here is my kernel:", "syntax"),
        ("return 5", "syntax"),
        ("(" * 100_000, "syntax"),
        ("x = " + "-" * 100_000 + "1", "unparsable"),
        ("x = " + "a." * 100_000 + "a", "unparsable"),
        ("x = " + "1 + " * 60_000 + "1", "unparsable"),
        ("if a: pass\n" + "elif b: pass\n" * 15_000, "unparsable"),
        ("class Model: pass", "no_model"),
        (TRITON.replace("class ModelNew", "class Modelnew"), "no_model"),
        (TRITON.replace("class ModelNew", "def f():\n  class ModelNew"), "no_model"),
        (TRITON.replace("def forward", "def call"), "no_forward"),
    ],
)
def test_text_that_is_no_usable_module_is_rejected(code: str, rule: str) -> None:
    found = finding(code)
    assert found.verdict is Verdict.REJECTED
    assert found.rule == rule
    assert 0 < len(found.message) < 800


def test_message_carries_the_line_of_the_submission() -> None:
    found = finding(TRITON + "def broken(:\n")
    assert found.line == TRITON.count("\n") + 1
    assert found.message.startswith(f"line {found.line}: ")


def test_message_holds_no_path() -> None:
    for code in ("def f(:", "", TRITON.replace("class ModelNew", "class M")):
        assert "/" not in finding(code).message


def test_parser_that_needs_too_much_time_is_stopped() -> None:
    code = TRITON + 'x = f"' + "{a}" * 80_000 + '"'
    found = check(Submission(code, Language.TRITON), timeout_s=1.0)
    assert found is None or found.rule == "unparsable"


def test_parser_that_needs_too_much_memory_is_stopped() -> None:
    found = check(Submission("x = [" + "1," * 120_000 + "]", Language.TRITON), memory_mb=48)
    assert found is not None
    assert found.rule == "unparsable"


def test_child_that_cannot_start_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.evaluator.static_checks.sys.executable", "/nonexistent/python")
    with pytest.raises(EvaluatorError):
        check(Submission(TRITON, Language.TRITON))


@pytest.mark.parametrize("program", ["print('x')", "raise SystemExit(3)", "print('x' * 100_000)", "print('[1]')"])
def test_child_that_talks_nonsense_is_our_fault(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(static_checks, "_BOOT", program)
    with pytest.raises(EvaluatorError):
        check(Submission(TRITON, Language.TRITON))


def test_child_that_gets_no_cpu_time_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_checks, "_BOOT", "import time; time.sleep(60)")
    monkeypatch.setattr(static_checks, "_WALL_PER_CPU_SECOND", 0.3)
    with pytest.raises(EvaluatorError):
        check(Submission(TRITON, Language.TRITON), timeout_s=1.0)


def test_submission_is_not_run() -> None:
    assert check(Submission("import os\nos._exit(7)\n" + TRITON, Language.TRITON)) is None
