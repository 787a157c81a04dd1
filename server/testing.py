"""An evaluator that runs no kernel: it answers from a script. For tests of the server and of clients.

Trusted side. Everything that a client can observe of a server, short of real verdicts, can be tried with it in
milliseconds and without torch.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from kernel_env.terms import Language, Precision, Stage, Verdict

from .errors import Busy, EvaluatorError
from .evaluator.interface import DeviceInfo, EvaluatorStatus
from .evaluator.results import EvalResult, Roofline, Submission, Timing
from .tasks.task import Task

Answer: TypeAlias = EvalResult | Exception
POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Call:
    """One evaluation that was asked for."""

    task_id: str
    code: str
    language: Language
    session_id: str
    start_within_s: float | None


def passed(t_new_ms: float = 2.0, t_ref_ms: float = 4.0, t_min_ms: float = 1.0, mode: str = "eager") -> EvalResult:
    """A correct result with these times per call, milliseconds."""
    return EvalResult(
        verdict=Verdict.PASSED,
        stage=Stage.DONE,
        feedback="Correct.",
        max_abs_err=0.0,
        timing=Timing(
            mode=mode,
            new_ms=t_new_ms,
            ci_low_ms=t_new_ms * 0.99,
            ci_high_ms=t_new_ms * 1.01,
            calls=10,
            repetitions=10,
            ref_ms=t_ref_ms,
            ref_eager_ms=t_ref_ms * 1.1,
        ),
        roofline=Roofline(min_ms=t_min_ms, bound="memory", bytes_moved=8e6, flops=1e6),
        precision=Precision.IEEE,
        eval_s=0.25,
        phases={"compile": 0.15, "timing": 0.1},
    )


def failed(verdict: Verdict, stage: Stage = Stage.CORRECTNESS, feedback: str = "Not correct.") -> EvalResult:
    """A result with a verdict that is the submission's fault."""
    return EvalResult(verdict=verdict, stage=stage, feedback=feedback, eval_s=0.2)


class FakeEvaluator:
    """Implements `Evaluation`. Answers in order; the last answer is repeated.

    Args:
        answers: Results to return and exceptions to raise.
        delay_s: How long an evaluation takes.
        device: The device it claims to have.
        hold: While given and not set, no evaluation begins: they wait as in a queue.
        on_close: Called by the first `close`.
    """

    def __init__(
        self,
        answers: Iterable[Answer] = (),
        *,
        delay_s: float = 0.0,
        device: DeviceInfo | None = None,
        hold: threading.Event | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._answers = list(answers) or [passed()]
        self._delay_s = delay_s
        self._device = device or DeviceInfo(gpu_id="cpu", kind="cpu", name="fake CPU")
        self._hold = hold
        self._on_close = on_close
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._waiting = 0
        self._running = 0
        self.calls: list[Call] = []

    @property
    def devices(self) -> tuple[DeviceInfo, ...]:
        """The one device."""
        return (self._device,)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed.is_set()

    def status(self) -> EvaluatorStatus:
        """Weak isolation, truly: there is none."""
        return EvaluatorStatus("weak", ("no submission is run at all",), self._waiting, self._running)

    def evaluate(
        self,
        task: Task,
        submission: Submission,
        *,
        session_id: str = "",
        start_within_s: float | None = None,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> EvalResult:
        """The next answer of the script.

        Raises:
            Busy: `hold` was not set in time, or the session was cancelled.
            EvaluatorError: Closed meanwhile.
        """
        with self._lock:
            self.calls.append(Call(task.task_id, submission.code, submission.language, session_id, start_within_s))
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            self._waiting += 1
        began = time.monotonic()
        try:
            self._wait_for_start(began, start_within_s, is_cancelled)
        finally:
            with self._lock:
                self._waiting -= 1
        waited_s = time.monotonic() - began
        with self._lock:
            self._running += 1
        try:
            if self._closed.wait(self._delay_s):
                raise EvaluatorError("the evaluator was closed")
        finally:
            with self._lock:
                self._running -= 1
        if isinstance(answer, Exception):
            raise answer
        return replace(answer, gpu_id=self._device.gpu_id, device=self._device.name, queue_wait_s=waited_s)

    def close(self) -> None:
        """Fail every evaluation at work."""
        if not self._closed.is_set():
            self._closed.set()
            if self._on_close is not None:
                self._on_close()

    def _wait_for_start(
        self, began: float, start_within_s: float | None, is_cancelled: Callable[[], bool] | None
    ) -> None:
        while self._hold is not None and not self._hold.wait(POLL_S):
            if self._closed.is_set():
                raise EvaluatorError("the evaluator was closed")
            if is_cancelled is not None and is_cancelled():
                raise Busy("cancelled: nobody waits for the result")
            if start_within_s is not None and time.monotonic() - began > start_within_s:
                raise Busy(f"no device was free within {start_within_s:g} s")
