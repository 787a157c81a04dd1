"""One evaluation past the static stage: the candidate's life, the judge's requests, and whose fault a failure was.

Trusted side; no torch. What a submission does ends in a verdict. What we could not do ends in an `EvaluatorError`; the
two are told apart by trying something of our own in the same place.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kernel_env.terms import Language, Stage, Verdict

from ..errors import EvaluatorError
from ..tasks.task import Task
from . import feedback
from .canary import CANARY
from .candidate_process import KILL_TEXTS, Candidate, CandidateSpec, Failed
from .child_programs import JudgeGone
from .results import EvalResult, Roofline, Submission, Timing, over_sizes
from .station import Station
from .task_on_device import Shop, TaskOnDevice, raise_if_ours, timed

_DEVICE_FAULT = "the device or its judge failed while this submission ran; a trusted kernel runs there fine"
_KEPT_BUSY = "the submission kept the device busy before its turn: import and construction must leave no work behind"
_NO_DEVICE_MEMORY = "the device had not enough memory left for the inputs and outputs of the task"


_Lease: TypeAlias = Callable[[], AbstractContextManager[None]]


class _Evicted(Exception):
    """The candidate was ended for the sake of another."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One size of a task, and what came of it."""

    task: Task
    result: EvalResult
    trail: dict[str, Any] | None
    """What the judge did with the submission; None if it did not come to it, or did not live to tell."""


class Work:
    """One evaluation.

    Args:
        end: Monotonic time by which it has to begin.
        phases: Filled with seconds by phase.
        secret: What the hidden values follow from, to repeat an evaluation; None for new ones.
    """

    def __init__(
        self,
        shop: Shop,
        station: Station,
        task: Task,
        session_id: str,
        end: float | None,
        is_cancelled: Callable[[], bool] | None,
        phases: dict[str, float],
        secret: str | None = None,
    ) -> None:
        self._shop, self._station, self._task = shop, station, task
        self._at = TaskOnDevice(shop, station, task, phases)
        self._session_id, self._end, self._is_cancelled, self._phases = session_id, end, is_cancelled, phases
        self._secret = secret
        self.waited_s = 0.0
        self.judged: list[Judged] = []
        """What came of each size so far, for an audit."""

        self._trail: dict[str, Any] | None = None

    def run(self, submission: Submission, base: EvalResult) -> EvalResult:
        """Judge at every size of the task, in a place of its own; ends at the first size that fails.

        Raises:
            Busy: Not begun in time, or cancelled.
            EvaluatorError: Our fault.
        """
        results: list[EvalResult] = []
        sizes = self._task.at_sizes(self._shop.kind)
        with self._place():
            for number, task in enumerate(sizes, start=1):
                self._at = TaskOnDevice(self._shop, self._station, task, self._phases)
                result = self._run_at_one_size(submission, base)
                self.judged.append(Judged(task, result, self._trail))
                results.append(replace(result, feedback=feedback.at_size(result.feedback, number, len(sizes))))
                if not result.is_correct:
                    break
        whole = over_sizes(results)
        if len(results) > 1 and whole.timing is not None and whole.roofline is not None:
            mean = feedback.for_pass(whole.timing, whole.roofline, whole.suspicious, whole.roofline_frac)
            return replace(whole, feedback=feedback.for_all_sizes(mean, [result.feedback for result in results]))
        return whole

    def _run_at_one_size(self, submission: Submission, base: EvalResult) -> EvalResult:
        """Load, then judge under the lease."""
        self._trail = None
        spec = self._at.spec(submission.code, "ModelNew", self._card())
        try:
            return self._run(spec, submission, base, self._lease)
        except _Evicted:
            # Somebody kept the device busy before its turn. With the device alone, each is seen for what it is.
            with self._lease():
                return self._run_alone(spec, submission, base)

    def _card(self) -> dict[str, Any]:
        """What is known of the task; the first to ask waits for the device."""
        card = self._at.known_card
        if card is None:
            with self._lease(), timed(self._phases, "card"):
                card = self._at.ask_card()
        return card

    def _run_alone(self, spec: CandidateSpec, submission: Submission, base: EvalResult) -> EvalResult:
        """Hold the lease: then it is ended only for the reference of its own task, which it kept from being timed."""
        try:
            return self._run(spec, submission, base, nullcontext)
        except _Evicted:
            return replace(base, verdict=Verdict.TIMING_REJECTED, stage=Stage.COMPILE, feedback=_KEPT_BUSY)

    def _run(self, spec: CandidateSpec, submission: Submission, base: EvalResult, lease: _Lease) -> EvalResult:
        for mode in self._at.modes:
            # Torch cannot leave a failed capture cleanly, so the loop gets a process of its own.
            result = self._run_in(mode, spec, submission, base, lease)
            if result is not None:
                return result
        raise EvaluatorError("a loop of calls could not be prepared")

    def prove(self) -> None:
        """Time the task's reference in a process of its own: every part of an evaluation is used.

        Raises:
            EvaluatorError: That failed.
        """
        with self._place(), self._lease():
            self._at.require_baseline()

    def readmit(self) -> None:
        """Use a device again if a new judge judges a trusted module there.

        Raises:
            EvaluatorError: It does not.
        """
        with self._place(), self._lease():
            self._at.restart()
            self._at.require_baseline()
            self._station.absolve()

    def _run_in(
        self, mode: str, spec: CandidateSpec, submission: Submission, base: EvalResult, lease: _Lease
    ) -> EvalResult | None:
        """One candidate from load to verdict; None if its calls cannot be captured in graphs."""
        with self._shop.places.candidate(self._station.gpu_id, spec) as candidate:
            with timed(self._phases, "load"):
                failed = candidate.load()
            answer = None
            if failed is None:
                with lease():
                    self._at.require_baseline()
                    answer = self._judge(candidate, submission, mode)
                    if answer.get("not_capturable"):
                        return None
                    failed = self._failure(answer, candidate)
            if failed is None:
                assert answer is not None
                return _passed(answer, base)
            if candidate.is_evicted:
                raise _Evicted
            log_tail = candidate.log_tail()
            killed_for = self._shop.places.end(self._station.gpu_id, candidate)
        if killed_for is not None:
            verdict, text = KILL_TEXTS[killed_for]
            failed = replace(failed, verdict=verdict, text=text)
        text = feedback.for_failure(failed.verdict, failed.text, log_tail)
        error = answer.get("max_abs_err") if answer else None
        return replace(base, verdict=failed.verdict, stage=failed.stage, feedback=text, max_abs_err=error)

    @contextmanager
    def _place(self) -> Iterator[None]:
        start = time.monotonic()
        with self._shop.places.reserved(self._session_id, self._end, self._is_cancelled):
            self.waited_s += time.monotonic() - start
            yield

    @contextmanager
    def _lease(self) -> Iterator[None]:
        start = time.monotonic()
        with self._station.lease.hold(self._session_id, self._end, self._is_cancelled):
            self.waited_s += time.monotonic() - start
            self._end = None  # begun: the budget is for beginning, not for ending
            yield

    def _judge(self, candidate: Candidate, submission: Submission, mode: str) -> dict[str, Any]:
        """The judge's answer; if it died, a verdict or our fault, as the canary decides."""
        interpreted = self._shop.kind == "cpu" and submission.language is Language.TRITON
        extra = {"interpreted": interpreted, "mode": mode, "secret": self._secret}
        try:
            answer = self._at.request("evaluate", candidate, extra)
            for name, seconds in answer.get("phases", {}).items():
                self._phases[name] = self._phases.get(name, 0.0) + seconds
            self._trail = answer.get("trail")
            self._station.absolve()
            return answer
        except JudgeGone:
            self._shop.places.end(self._station.gpu_id, candidate)
            self._at.restart()
        try:
            TaskOnDevice(self._shop, self._station, CANARY, self._phases).require_baseline()
        except EvaluatorError:
            self._station.strike("canary")
            raise
        return {
            "verdict": Verdict.DEVICE_FAULT,
            "stage": Stage.CORRECTNESS,
            "feedback": _DEVICE_FAULT,
            "max_abs_err": None,
            "phases": {},
        }

    def _failure(self, answer: dict[str, Any], candidate: Candidate) -> Failed | None:
        """What went wrong, if anything. Hold the lease."""
        if answer.get("gone"):
            return candidate.how_it_ended(Stage(answer["gone"]))
        if answer.get("fault") == "memory":
            # Somebody else may hold the device's memory. Then the reference alone does not fit either, and that raises.
            self._shop.places.end(self._station.gpu_id, candidate)
            self._at.time_reference(self._at.ask_card())
            return Failed(Verdict.OUT_OF_MEMORY, Stage.CORRECTNESS, _NO_DEVICE_MEMORY)
        raise_if_ours(answer)
        if answer["stage"] != Stage.DONE:
            return Failed(Verdict(answer["verdict"]), Stage(answer["stage"]), answer["feedback"])
        return None


def _passed(answer: dict[str, Any], base: EvalResult) -> EvalResult:
    timing, roofline = Timing(**answer["timing"]), Roofline(**answer["roofline"])
    return replace(
        base,
        verdict=Verdict(answer["verdict"]),
        stage=Stage.DONE,
        feedback=feedback.for_pass(timing, roofline, answer["suspicious"]),
        max_abs_err=answer["max_abs_err"],
        timing=timing,
        roofline=roofline,
        suspicious=answer["suspicious"],
        own_share=answer["own_share"],
    )
