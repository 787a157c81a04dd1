"""The runner of the corpus keeps a line for whatever comes of a case, and the load counts every refusal."""

import math
import time

import pytest

from bench.corpus import Run, is_settled, reward_of
from bench.false_positives import Load
from kernel_env.terms import Stage, Verdict
from server.errors import EvaluatorError
from server.evaluator.results import EvalResult
from server.testing import FakeEvaluator, failed, passed
from tests.cases import Case, Intent, corpus

ABOUT = {"device": "a device", "commit": "abc"}


def honest() -> Case:
    return next(case for case in corpus("cpu") if case.name == "tanh/passed_honest")


def test_line_of_a_right_case_has_its_time_and_reward() -> None:
    line = Run(FakeEvaluator([passed(t_new_ms=2.0, t_min_ms=1.0)]), ABOUT).line(honest())
    assert (line["case"], line["expected"], line["got"], line["ok"]) == ("tanh/passed_honest", "passed", "passed", True)
    assert line["t_new_ms"] == 2.0
    assert line["reward"] == pytest.approx(0.3 + 2.7 * 0.5)
    assert line["device"] == "a device"
    assert "feedback" not in line


def test_line_of_a_wrong_case_says_why() -> None:
    evaluator = FakeEvaluator([failed(Verdict.TIMEOUT, feedback="too slow " * 100)])
    line = Run(evaluator, ABOUT).line(honest())
    assert (line["got"], line["ok"]) == ("timeout", False)
    assert line["why"] == "expected passed, got timeout"
    assert len(line["feedback"]) == 200


def test_fault_of_ours_is_a_line_and_the_run_goes_on() -> None:
    run = Run(FakeEvaluator([EvaluatorError("the judge is gone"), passed()]), ABOUT)
    line = run.line(honest())
    assert (line["got"], line["ok"]) == ("infra_error", False)
    assert "the judge is gone" in line["why"]
    assert run.line(honest())["ok"]


def test_case_is_settled_by_a_right_line_of_the_same_text() -> None:
    case = honest()
    line = {"ok": True, "digest": case.digest}
    assert is_settled(case, {case.name: line})
    assert not is_settled(case, {case.name: {**line, "ok": False}})
    assert not is_settled(case, {case.name: {**line, "digest": "of another text"}})
    assert not is_settled(case, {})


def test_interpreted_kernel_earns_no_speed() -> None:
    assert reward_of(passed(mode="interpreted")) == pytest.approx(0.3)
    assert reward_of(failed(Verdict.INCORRECT_VALUE, Stage.CORRECTNESS)) == 0.0


def test_load_counts_what_was_refused_and_what_was_our_fault() -> None:
    answers: list[EvalResult | Exception] = [
        passed(),
        failed(Verdict.TIMING_REJECTED, Stage.TIMING),
        EvaluatorError("gone"),
        passed(),
    ]
    evaluator = FakeEvaluator(answers)
    load = Load(evaluator, [honest()], count=5, end=math.inf)
    load.work("one session")
    summary = load.summary()
    assert (summary["evaluations"], summary["passed"], summary["refused"]) == (5, 3, 2)
    assert [(r.number, r.verdict) for r in load.refusals] == [(1, "timing_rejected"), (2, "infra_error")]
    assert len({call.code for call in evaluator.calls}) == 5, "a text that was seen before may be answered from memory"


def test_load_begins_nothing_after_its_end() -> None:
    load = Load(FakeEvaluator([passed()]), [honest()], count=5, end=time.monotonic() - 1.0)
    load.work("one session")
    assert load.summary()["evaluations"] == 0


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_load_has_submissions(kind: str) -> None:
    assert sum(case.intent is Intent.HONEST for case in corpus(kind)) >= 25
