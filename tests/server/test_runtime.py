"""The evaluator's life: built once, replaced when it can judge nothing any more, never after the end."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from server import runtime as module
from server.errors import EvaluatorError
from server.evaluator.interface import Evaluation, EvaluatorStatus
from server.runtime import Runtime
from server.settings import Settings
from server.testing import FakeEvaluator


class Mortal(FakeEvaluator):
    """Judges until told to have a fault."""

    fault: str | None = None

    def status(self) -> EvaluatorStatus:
        return replace(super().status(), fault=self.fault)


class Factory:
    """Builds evaluators, or fails as often as told."""

    def __init__(self) -> None:
        self.made: list[Mortal] = []
        self.failures = 0

    def build(self, settings: Settings) -> Evaluation:
        if self.failures:
            self.failures -= 1
            raise EvaluatorError("the device is gone")
        self.made.append(Mortal())
        return self.made[-1]


@pytest.fixture
def factory(monkeypatch: pytest.MonkeyPatch) -> Factory:
    monkeypatch.setattr(module, "WATCH_S", 0.01)
    return Factory()


@pytest.fixture
def runtime(factory: Factory) -> Iterator[Runtime]:
    made = Runtime(Settings(), factory.build, event_fd=None)
    made.start()
    yield made
    made.close()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_healthy_evaluator_stays(runtime: Runtime, factory: Factory) -> None:
    time.sleep(0.1)
    assert [runtime.services().evaluation] == factory.made


def test_an_evaluator_with_a_fault_is_closed_and_replaced(runtime: Runtime, factory: Factory) -> None:
    before = runtime.services()
    factory.made[0].fault = "the warden ended"
    until(lambda: len(factory.made) == 2)
    until(lambda: runtime._services is not None)
    after = runtime.services()
    assert factory.made[0].is_closed
    assert after.evaluation is factory.made[1]
    assert (after.tasks, after.events, after.connections) == (before.tasks, before.events, before.connections)


def test_until_one_can_be_started_the_reason_is_told(runtime: Runtime, factory: Factory) -> None:
    factory.failures = 5
    factory.made[0].fault = "the warden ended"
    until(lambda: factory.failures < 4)
    with pytest.raises(EvaluatorError, match="no evaluator could be started: the device is gone"):
        runtime.services()
    until(lambda: len(factory.made) == 2)


def test_nothing_is_started_after_the_end(runtime: Runtime, factory: Factory) -> None:
    factory.failures = 10**9
    factory.made[0].fault = "the warden ended"
    until(lambda: factory.failures < 10**9)
    runtime.close()
    with pytest.raises(EvaluatorError, match="stopping"):
        runtime.services()
    until(lambda: all(thread.name != "watch" for thread in threading.enumerate()))
    assert len(factory.made) == 1


def test_an_evaluator_that_is_ready_too_late_is_closed(factory: Factory) -> None:
    may_go_on = threading.Event()

    def build(settings: Settings) -> Evaluation:
        may_go_on.wait(5.0)
        return factory.build(settings)

    runtime = Runtime(Settings(), build, event_fd=None)
    outcome: list[str] = []

    def start() -> None:
        try:
            runtime.start()
        except EvaluatorError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    runtime.close()
    may_go_on.set()
    thread.join(5.0)
    assert outcome == ["the server was stopped before it had started"]
    assert factory.made[0].is_closed
