"""Who pays when a judge, the zygote or the warden is killed; many sessions at once; a busy device; the end."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_env.models import Language, Verdict
from server.errors import Busy, EvaluatorError
from server.evaluator.evaluator import Evaluator
from server.evaluator.results import EvalResult, Submission
from server.tasks.task import Task
from tests.evaluations import CORPUS, children, evaluate, honest_code, processes_of_slots, small_settings, small_task

pytestmark = pytest.mark.slow

TANH = small_task("tanh")

SLEEPS_IN_FORWARD = honest_code("tanh").replace(
    "y = torch.empty_like(x)",
    "y = torch.empty_like(x); __import__('time').sleep(0 if hasattr(self, 'slept') else 2); self.slept = True",
)
"""Its first call takes two seconds, and it holds the device from 0.2 s on or so."""

SLEEPS_AT_IMPORT = honest_code("tanh").replace("import torch\n", "import time; time.sleep(1.5)\nimport torch\n", 1)


def _child(module: str) -> int:
    """Process of ours that runs a module; of several the youngest."""
    found = [pid for pid in children() if module in Path(f"/proc/{pid}/cmdline").read_bytes().decode()]
    assert found, f"no child runs {module}"
    return max(found, key=lambda pid: int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]))


def _during(evaluator: Evaluator, code: str, delay_s: float, act: Callable[[], None]) -> EvalResult | Exception:
    """What comes of an evaluation in the midst of which something happens."""
    outcome: list[EvalResult | Exception] = []

    def work() -> None:
        try:
            outcome.append(evaluate(evaluator, TANH, code))
        except Exception as error:  # noqa: BLE001 - handed to the test, which looks at it
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(delay_s)
    act()
    thread.join(120.0)
    assert not thread.is_alive()
    return outcome[0]


def _is_warm(evaluator: Evaluator) -> None:
    """The task is known and its reference timed, and all is well."""
    result = evaluate(evaluator, TANH, honest_code("tanh"))
    assert result.verdict is Verdict.PASSED, result.feedback


def _case(name: str) -> str:
    return (CORPUS / "tanh" / f"{name}.py").read_text(encoding="utf-8")


def test_concurrent_evaluations_do_not_disturb_each_other(evaluator: Evaluator) -> None:
    """More sessions than slots, on a task nobody has timed yet, with submissions that end early among them."""
    fresh = Task("tanh_again", TANH.level, TANH.split, TANH.precision, TANH.source + "\n# another task\n")
    expected = {
        "passed_honest": Verdict.PASSED,
        "compile_error_exits_at_import": Verdict.COMPILE_ERROR,
        "incorrect_value_zeros": Verdict.INCORRECT_VALUE,
        "compile_error_segfault_at_import": Verdict.COMPILE_ERROR,
    }
    wrong: list[str] = []

    def session(number: int) -> None:
        name = list(expected)[number % len(expected)]
        for _ in range(2):
            result = evaluate(evaluator, fresh, _case(name), session_id=str(number))
            if result.verdict is not expected[name]:
                wrong.append(f"{name}: {result.verdict}: {result.feedback}")

    threads = [threading.Thread(target=session, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200.0)
        assert not thread.is_alive()
    assert wrong == []
    assert evaluator.status().running == 0
    assert processes_of_slots() == []


def test_busy_when_it_cannot_begin_in_time_or_nobody_waits(evaluator: Evaluator) -> None:
    _is_warm(evaluator)
    submission = Submission(honest_code("tanh"), Language.CPP)

    def ask() -> None:
        with pytest.raises(Busy):
            evaluator.evaluate(TANH, submission, start_within_s=0.2)
        with pytest.raises(Busy):
            evaluator.evaluate(TANH, submission, is_cancelled=lambda: True)

    assert isinstance(_during(evaluator, SLEEPS_IN_FORWARD, 1.0, ask), EvalResult)


def test_judge_that_dies_during_a_submission_is_the_submission_s_fault_if_the_canary_lives(
    evaluator: Evaluator,
) -> None:
    _is_warm(evaluator)
    result = _during(evaluator, SLEEPS_IN_FORWARD, 1.0, lambda: os.kill(_child("judge.program"), signal.SIGKILL))
    assert isinstance(result, EvalResult), result
    assert result.verdict is Verdict.DEVICE_FAULT
    _is_warm(evaluator)


def test_judge_that_dies_between_evaluations_is_replaced_unnoticed(evaluator: Evaluator) -> None:
    """By the thread of a session; a child that ends with its parent would end with that thread."""
    os.kill(_child("judge.program"), signal.SIGKILL)
    thread = threading.Thread(target=_is_warm, args=(evaluator,))
    thread.start()
    thread.join(120.0)
    judge = _child("judge.program")
    _is_warm(evaluator)
    assert _child("judge.program") == judge


def test_dead_zygote_is_our_fault_and_replaced(evaluator: Evaluator) -> None:
    _is_warm(evaluator)
    result = _during(evaluator, SLEEPS_IN_FORWARD, 1.0, lambda: os.kill(_child("candidate.zygote"), signal.SIGKILL))
    assert isinstance(result, EvaluatorError), result
    _is_warm(evaluator)


def test_candidate_that_is_evicted_for_another_gets_its_verdict_all_the_same(evaluator: Evaluator) -> None:
    """Nothing of how it ended may count: it is started again, with the device to itself."""
    _is_warm(evaluator)
    result = _during(evaluator, SLEEPS_AT_IMPORT, 1.0, lambda: evaluator._shop.places.evict("cpu", -1))
    assert isinstance(result, EvalResult), result
    assert result.verdict is Verdict.PASSED, result.feedback
    assert result.eval_s > 1.0 + 1.5  # loaded twice


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Evaluator]:
    """An evaluator that a test may break."""
    made = Evaluator(small_settings(tmp_path))
    yield made
    made.close()


def test_dead_warden_is_our_fault_and_close_leaves_nothing(own: Evaluator) -> None:
    """The warden is not replaced: every later evaluation is our fault as well, never a verdict."""
    _is_warm(own)
    assert own.status().fault is None
    result = _during(own, SLEEPS_IN_FORWARD, 1.0, lambda: os.kill(_child("sandbox.warden"), signal.SIGKILL))
    assert own.status().fault is not None
    assert isinstance(result, EvaluatorError), result
    with pytest.raises(EvaluatorError):
        evaluate(own, TANH, honest_code("tanh"))
    own.close()
    assert processes_of_slots() == []


def test_close_ends_children_and_evaluations_at_once(tmp_path: Path) -> None:
    before = set(children())
    made = Evaluator(small_settings(tmp_path))
    folder = made._shop.places._pool._root.parent
    try:
        _is_warm(made)
        start = time.monotonic()
        result = _during(made, SLEEPS_AT_IMPORT, 0.7, made.close)
        assert isinstance(result, EvaluatorError), result
        assert time.monotonic() - start < 6.0
    finally:
        made.close()
    assert set(children()) <= before
    assert processes_of_slots() == []
    assert not folder.exists()
    with pytest.raises(EvaluatorError):
        evaluate(made, TANH, honest_code("tanh"))


def test_evaluations_leave_no_descriptor_and_no_thread_behind(evaluator: Evaluator) -> None:
    _is_warm(evaluator)
    before = _held()
    for name in ("passed_honest", "compile_error_segfault_at_import", "incorrect_shape_transposed", "rejected_prose"):
        evaluate(evaluator, TANH, _case(name))
    assert _held() == before


def _held() -> tuple[int, int]:
    """Descriptors and threads of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir()), threading.active_count()
