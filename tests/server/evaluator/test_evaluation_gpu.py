"""Submissions on a real GPU: the path of a file in tests/corpus/gpu states what must come out."""

import os
from collections.abc import Iterator

import pytest

from kernel_env.terms import Stage, Verdict
from server.evaluator.evaluator import Evaluator
from tests.cases import Case, Intent, corpus
from tests.evaluations import evaluate, gpu_settings, honest_code

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    """One evaluator on the GPU for every case."""
    made = Evaluator(gpu_settings(os.environ.get("KERNEL_ENV_DEVICES", "cuda:0")))
    yield made
    made.close()


def _parameter(case: Case) -> object:
    marks = [] if case.open_hole is None else [pytest.mark.xfail(reason=case.open_hole, strict=True)]
    return pytest.param(case, id=case.name.removeprefix("gpu/"), marks=marks)


@pytest.mark.parametrize("case", [_parameter(case) for case in corpus("cuda")])
def test_verdict_is_the_one_the_path_states(evaluator: Evaluator, case: Case) -> None:
    """Each case that is not honest is followed by one that is, which must pass as if nothing had been."""
    peer_ms = None
    if case.as_slow_as is not None:
        peer = evaluate(evaluator, case.task, case.as_slow_as.read_text(encoding="utf-8"))
        assert peer.timing is not None, peer.feedback
        peer_ms = peer.timing.new_ms
    result = evaluate(evaluator, case.task, case.reply)
    assert case.shortfalls(result, peer_ms) == [], result.feedback
    assert (result.stage is Stage.DONE) == result.is_correct
    if case.intent is Intent.HONEST:
        assert result.timing is not None
        return
    after = evaluate(evaluator, case.task, f"{honest_code(case.path.parent.name, 'cuda')}\n# after {case.path.stem}\n")
    assert after.verdict is Verdict.PASSED, after.feedback
    assert after.timing is not None
    assert after.timing.mode == "graph"


def test_isolation_on_this_host_is_strong(evaluator: Evaluator) -> None:
    assert evaluator.status().isolation == "strong"
