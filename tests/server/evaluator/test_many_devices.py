"""Several devices on one host: both work, one that fails is left out, and comes back when it judges again.

The CPU under two names; what they share of the cores is no matter here.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from kernel_env.models import Language, Verdict
from server.errors import Busy, EvaluatorError
from server.evaluator import evaluator as module
from server.evaluator.child_programs import Judge
from server.evaluator.evaluator import Evaluator
from server.evaluator.results import EvalResult, Submission
from server.evaluator.station import STRIKES
from tests.evaluations import evaluate, honest_code, small_settings, small_task

pytestmark = pytest.mark.slow

TANH = small_task("tanh")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "QUARANTINE_S", 0.5)
        made = Evaluator(
            replace(small_settings(tmp_path_factory.mktemp("audit")), devices=("cpu:0", "cpu:1"), max_waiting=1)
        )
        yield made
        made.close()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _together(evaluator: Evaluator, count: int) -> list[EvalResult]:
    """So many evaluations at a time, each of a session of its own."""
    results: list[EvalResult] = []

    def work(number: int) -> None:
        results.append(evaluate(evaluator, TANH, honest_code("tanh"), session_id=str(number)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
    return results


def test_devices_have_names_and_judges_of_their_own(pair: Evaluator) -> None:
    assert [(device.gpu_id, device.kind) for device in pair.devices] == [("cpu:0", "cpu"), ("cpu:1", "cpu")]
    assert len({station.judge.process.pid for station in pair._stations}) == 2


def test_sessions_are_spread_over_the_devices(pair: Evaluator) -> None:
    results = _together(pair, 2)
    assert [result.verdict for result in results] == [Verdict.PASSED] * 2
    assert {result.gpu_id for result in results} == {"cpu:0", "cpu:1"}


def test_a_queue_that_is_full_refuses_at_once(pair: Evaluator) -> None:
    slow = honest_code("tanh").replace("import torch\n", "import time; time.sleep(1.5)\nimport torch\n", 1)
    threads = [
        threading.Thread(target=evaluate, args=(pair, TANH, slow), kwargs={"session_id": str(n)}) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    until(lambda: pair._shop.places.free.waiting == 1)
    start = time.monotonic()
    with pytest.raises(Busy, match="no more may wait; try again in about") as refused:
        pair.evaluate(TANH, Submission(honest_code("tanh"), Language.CPP), session_id="late")
    assert time.monotonic() - start < 1.0
    assert refused.value.retry_after_s is not None
    for thread in threads:
        thread.join(60.0)


def test_a_device_that_failed_is_left_out_until_it_judges_again(
    pair: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def fail() -> Judge:
        nonlocal tries
        tries += 1
        raise EvaluatorError("no such device")

    sick, well = pair._stations
    judge = sick.judge
    with monkeypatch.context() as patch:
        patch.setattr(sick, "_start_judge", fail)
        sick.strikes = STRIKES
        assert pair.status().fault is None
        assert [result.gpu_id for result in _together(pair, 2)] == [well.gpu_id] * 2
        until(lambda: tries >= 2)
        assert not sick.is_healthy
    until(lambda: sick.is_healthy)
    assert sick.judge is not judge
