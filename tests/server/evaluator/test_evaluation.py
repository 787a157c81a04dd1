"""Whole evaluations on the CPU device: honest, broken and hostile submissions get what their path states."""

import pytest

from kernel_env.models import Language, Stage, Verdict
from server.evaluator.evaluator import Evaluator
from server.evaluator.results import Submission
from tests.evaluations import (
    Case,
    corpus,
    evaluate,
    honest_code,
    processes_of_slots,
    small_task,
)

pytestmark = pytest.mark.slow

MAX_FEEDBACK_CHARS = 6100
HEAVY = ("out_of_memory", "runtime_error", "timeout", "timing_rejected")
"""Verdicts of submissions after which an honest one is evaluated at once."""


def _parameter(case: Case) -> object:
    marks = [] if case.open_hole is None else [pytest.mark.xfail(reason=case.open_hole, strict=True)]
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [_parameter(case) for case in corpus()])
def test_submission_gets_the_verdict_its_path_states(evaluator: Evaluator, case: Case) -> None:
    if case.needs_isolation and evaluator.status().isolation != "strong":
        pytest.skip("the host cannot confine a submission")
    result = evaluate(evaluator, case.task, case.reply)
    assert case.shortfalls(result) == [], result.feedback
    _is_fit_for_the_agent(result.feedback)
    assert processes_of_slots() == []


@pytest.mark.parametrize("heavy", HEAVY)
def test_honest_submission_passes_after_a_hostile_one(evaluator: Evaluator, heavy: str) -> None:
    worst = {
        "out_of_memory": "out_of_memory_fork_bomb",
        "runtime_error": "runtime_error_forged_packets",
        "timeout": "timeout_in_a_later_call",
        "timing_rejected": "timing_rejected_done_too_early",
    }
    if evaluator.status().isolation != "strong":
        pytest.skip("the host cannot confine a submission")
    case = next(case for case in corpus() if case.path.stem == worst[heavy])
    assert evaluate(evaluator, case.task, case.path.read_text(encoding="utf-8")).verdict in case.verdicts
    after = evaluate(evaluator, small_task("tanh"), honest_code("tanh"))
    assert after.verdict is Verdict.PASSED, after.feedback


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x = 1\0\n", "NUL"),
        ("x = '\ud800'\n", "surrogate"),
        ("#" * 300_000, "300000 characters"),
        ("(" * 100_000 + ")" * 100_000, "nested"),
        ("x = " + "-" * 100_000 + "1\n", "cannot be parsed"),
        ("\n\n", "is empty"),
        ("\ufeff", "is empty"),
        ("```python\n```\n", "not Python"),
    ],
    ids=["nul", "surrogate", "long", "nested", "unary", "blank", "mark", "fence"],
)
def test_text_that_is_no_module_is_rejected(evaluator: Evaluator, code: str, says: str) -> None:
    result = evaluate(evaluator, small_task("tanh"), code)
    assert (result.verdict, result.stage) == (Verdict.REJECTED, Stage.STATIC)
    assert says in result.feedback
    _is_fit_for_the_agent(result.feedback)


def test_cuda_source_on_the_cpu_device_gets_a_verdict(evaluator: Evaluator) -> None:
    submission = Submission(honest_code("tanh"), Language.CUDA)
    assert evaluator.evaluate(small_task("tanh"), submission).verdict in {Verdict.PASSED, Verdict.COMPILE_ERROR}


def test_passed_result_is_complete(evaluator: Evaluator) -> None:
    result = evaluate(evaluator, small_task("affine"), honest_code("affine"))
    assert (result.verdict, result.stage) == (Verdict.PASSED, Stage.DONE)
    assert result.timing is not None
    assert result.roofline is not None
    assert result.timing.mode == "eager"
    assert result.timing.ci_low_ms <= result.timing.new_ms <= result.timing.ci_high_ms
    assert result.roofline.bytes_moved == 2 * 64 * 1024 * 4
    assert {"static", "load", "first_call", "correctness", "timing"} <= result.phases.keys()
    assert result.max_abs_err is not None
    assert result.eval_s > 0


def _is_fit_for_the_agent(feedback: str) -> None:
    """Bounded, printable, and without a directory of the host."""
    assert len(feedback) <= MAX_FEEDBACK_CHARS
    assert feedback.replace("\n", "").replace("\t", "").isprintable()
    for folder in ("/tmp/", "kernel-env-", "slot", "site-packages/"):
        assert folder not in feedback
