"""One evaluation past the static stage: the candidate's life, the judge's requests, and whose fault a failure was.

Trusted side; no torch. What a submission does ends in a verdict. What we could not do ends in an `EvaluatorError`; the
two are told apart by trying something of our own in the same place.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kernel_env.terms import Language, Stage, Verdict

from ..errors import EvaluatorError
from ..sandbox.isolation import Isolation
from ..sandbox.limits import Limits
from ..settings import Settings
from ..tasks.roles import has_free_inputs
from ..tasks.task import Task
from . import feedback
from .canary import CANARY
from .candidate_process import KILL_TEXTS, Candidate, CandidateSpec, Failed
from .child_programs import JudgeGone
from .devices import candidate_devices
from .places import Places
from .results import EvalResult, Roofline, Submission, Timing, over_sizes
from .station import Station

CARD_TIMEOUT_S = 300.0
JUDGE_MARGIN_S = 240.0
"""On top of the submission's own limits: hidden inputs, comparisons and teardown are our time."""

_DEVICE_FAULT = "the device or its judge failed while this submission ran; a trusted kernel runs there fine"
_KEPT_BUSY = "the submission kept the device busy before its turn: import and construction must leave no work behind"
_NO_DEVICE_MEMORY = "the device had not enough memory left for the inputs and outputs of the task"


def threads_for(kind: str, devices: int = 1) -> int:
    """Threads of a judge and of a candidate, on a host with so many devices of that kind.

    On the CPU device half of the cores: a parallel loop whose threads compete with anything else for a core waits for a
    time slice at its end, and is then ten times slower than it should be.
    """
    half = max(1, (os.cpu_count() or 1) // 2)
    return max(1, half // devices) if kind == "cpu" else min(8, half)


_Lease: TypeAlias = Callable[[], AbstractContextManager[None]]


class _Evicted(Exception):
    """The candidate was ended for the sake of another."""


@dataclass(frozen=True, slots=True)
class Shop:
    """What every evaluation of a server uses."""

    kind: str
    """`cpu` or `cuda`."""

    threads: int
    """Of a judge and of a candidate."""

    settings: Settings
    isolation: Isolation
    places: Places
    cards: dict[tuple[str, str], dict[str, Any]]
    """What is known of tasks, by device and task."""


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
            for number, self._task in enumerate(sizes, start=1):
                result = self._run_at_one_size(submission, base)
                self.judged.append(Judged(self._task, result, self._trail))
                results.append(replace(result, feedback=feedback.at_size(result.feedback, number, len(sizes))))
                if not result.is_correct:
                    break
        whole = over_sizes(results)
        if len(results) > 1 and whole.timing is not None and whole.roofline is not None:
            mean = feedback.for_pass(whole.timing, whole.roofline, whole.suspicious)
            return replace(whole, feedback=feedback.for_all_sizes(mean, [result.feedback for result in results]))
        return whole

    def _run_at_one_size(self, submission: Submission, base: EvalResult) -> EvalResult:
        """Load, then judge under the lease."""
        self._trail = None
        spec = self._spec(self._task, submission.code, "ModelNew", self._card())
        try:
            return self._run(spec, submission, base, self._lease)
        except _Evicted:
            # Somebody kept the device busy before its turn. With the device alone, each is seen for what it is.
            with self._lease():
                return self._run_alone(spec, submission, base)

    def _run_alone(self, spec: CandidateSpec, submission: Submission, base: EvalResult) -> EvalResult:
        """Hold the lease: then it is ended only for the reference of its own task, which it kept from being timed."""
        try:
            return self._run(spec, submission, base, nullcontext)
        except _Evicted:
            return replace(base, verdict=Verdict.TIMING_REJECTED, stage=Stage.COMPILE, feedback=_KEPT_BUSY)

    def _run(self, spec: CandidateSpec, submission: Submission, base: EvalResult, lease: _Lease) -> EvalResult:
        for mode in self._modes:
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
            self._require_baseline(self._task)

    def readmit(self) -> None:
        """Use a device again if a new judge judges a trusted module there.

        Raises:
            EvaluatorError: It does not.
        """
        with self._place(), self._lease():
            self._restart()
            self._require_baseline(self._task)
            self._station.absolve()

    @property
    def _modes(self) -> tuple[str, ...]:
        """How calls are run, in the order tried."""
        return ("graph", "eager") if self._shop.kind == "cuda" else ("eager",)

    def _run_in(
        self, mode: str, spec: CandidateSpec, submission: Submission, base: EvalResult, lease: _Lease
    ) -> EvalResult | None:
        """One candidate from load to verdict; None if its calls cannot be captured in graphs."""
        with self._shop.places.candidate(self._station.gpu_id, spec) as candidate:
            with self._timed("load"):
                failed = candidate.load()
            answer = None
            if failed is None:
                with lease():
                    self._require_baseline(self._task)
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

    def _spec(self, task: Task, code: str, entry: str, card: Mapping[str, Any]) -> CandidateSpec:
        """What to start a candidate with."""
        shop, gpu_id = self._shop, self._station.gpu_id
        return CandidateSpec(
            code=code,
            entry=entry,
            precision=task.precision,
            init=card["init"],
            compile_timeout_s=shop.settings.compile_timeout_s,
            threads=shop.threads,
            visible_device=gpu_id.removeprefix("cuda:") if shop.kind == "cuda" else "",
            devices=candidate_devices(gpu_id),
            limits=Limits(host_memory_bytes=int(shop.settings.host_memory_gb * 1e9)),
            isolation=shop.isolation,
            shared_bytes=card["shared_bytes"] if shop.kind == "cpu" else 0,
        )

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self._phases[name] = self._phases.get(name, 0.0) + time.monotonic() - start

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

    def _key(self, task: Task) -> str:
        """Name of the task at the size for this kind of device."""
        return f"{task.task_id}:{hash(task.source_for(self._shop.kind))}"

    def _request_fields(self, task: Task) -> dict[str, object]:
        source = task.source_for(self._shop.kind)
        return {
            "task_key": self._key(task),
            "task_id": task.task_id,
            "source": source,
            "precision": task.precision.value,
            "has_free_inputs": has_free_inputs(task.task_id),
            "floor_validated": task.floor_validated,
            "level": task.level,
            "policy": self._shop.settings.policy.value,
            "compile_timeout_s": self._shop.settings.compile_timeout_s,
            "run_timeout_s": self._shop.settings.run_timeout_s,
        }

    def _card(self) -> dict[str, Any]:
        key = (self._station.gpu_id, self._key(self._task))
        card = self._shop.cards.get(key)
        if card is None:
            with self._lease(), self._timed("card"):
                card = self._ask_card(self._task)
            self._shop.cards[key] = card
        return card

    def _ask_card(self, task: Task) -> dict[str, Any]:
        """What the judge knows of a task. No submission is involved: a judge that ended before is replaced."""
        try:
            card = self._request_card(task)
        except JudgeGone:
            self._restart()
            try:
                card = self._request_card(task)
            except JudgeGone as error:
                raise EvaluatorError("the judge failed on the reference of this task") from error
        _raise_if_ours(card)
        return card

    def _request_card(self, task: Task) -> dict[str, Any]:
        fields = self._request_fields(task)
        return self._station.judge.request("card", CARD_TIMEOUT_S, lambda _: None, (), **fields)

    def _restart(self) -> None:
        """New judge; what was stopped for the old one continues. Hold the lease."""
        self._shop.places.loud(self._station.gpu_id)
        self._station.restart()

    def _require_baseline(self, task: Task) -> None:
        """Time the reference in a process of its own, unless it is known. Hold the lease."""
        station, key = self._station, self._key(task)
        if key in station.baselines and station.judge.is_alive:
            return
        card = self._ask_card(task)
        if not card["has_baseline"]:
            self._time_reference(task, card)
        station.baselines.add(key)

    def _time_reference(self, task: Task, card: dict[str, Any]) -> None:
        spec = self._spec(task, task.source_for(self._shop.kind), "Model", card)
        with self._timed("baseline"):
            for mode in self._modes:
                answer = self._baseline_in(mode, task, spec)
                if not answer.get("not_capturable"):
                    break
        if answer.get("gone"):
            raise EvaluatorError("the process that timed the reference ended early")
        _raise_if_ours(answer)

    def _baseline_in(self, mode: str, task: Task, spec: CandidateSpec) -> dict[str, Any]:
        with self._shop.places.candidate(self._station.gpu_id, spec) as candidate:
            failed = candidate.load()
            if failed is not None:
                raise EvaluatorError(f"the reference of this task does not load: {failed.text}")
            try:
                return self._request("baseline", candidate, task, {"mode": mode})
            except JudgeGone as error:
                raise EvaluatorError("the judge failed while it timed the reference") from error

    def _judge(self, candidate: Candidate, submission: Submission, mode: str) -> dict[str, Any]:
        """The judge's answer; if it died, a verdict or our fault, as the canary decides."""
        interpreted = self._shop.kind == "cpu" and submission.language is Language.TRITON
        extra = {"interpreted": interpreted, "mode": mode, "secret": self._secret}
        try:
            answer = self._request("evaluate", candidate, self._task, extra)
            self._trail = answer.get("trail")
            self._station.absolve()
            return answer
        except JudgeGone:
            self._shop.places.end(self._station.gpu_id, candidate)
            self._restart()
        try:
            self._require_baseline(CANARY)
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

    def _request(self, op: str, candidate: Candidate, task: Task, extra: dict[str, object]) -> dict[str, Any]:
        settings = self._shop.settings
        answer = self._station.judge.request(
            op,
            settings.compile_timeout_s + settings.run_timeout_s + JUDGE_MARGIN_S,
            lambda event: self._serve(event, candidate.slot_index),
            (candidate.channel.sock.fileno(), candidate.pidfd),
            slot=candidate.slot_index,
            uid=candidate.uid,
            pid=candidate.pid,
            **self._request_fields(task),
            **extra,
        )
        if op == "evaluate":
            for name, seconds in answer.get("phases", {}).items():
                self._phases[name] = self._phases.get(name, 0.0) + seconds
        return answer

    def _serve(self, event: Mapping[str, Any], own_slot: int) -> None:
        """What the judge asks for about the other candidates of its device."""
        places, gpu_id = self._shop.places, self._station.gpu_id
        if event["event"] == "quiet":
            places.quiet(gpu_id, own_slot, bool(event["on"]))
        else:
            places.evict(gpu_id, own_slot)

    def _failure(self, answer: dict[str, Any], candidate: Candidate) -> Failed | None:
        """What went wrong, if anything. Hold the lease."""
        if answer.get("gone"):
            return candidate.how_it_ended(Stage(answer["gone"]))
        if answer.get("fault") == "memory":
            # Somebody else may hold the device's memory. Then the reference alone does not fit either, and that raises.
            self._shop.places.end(self._station.gpu_id, candidate)
            self._time_reference(self._task, self._ask_card(self._task))
            return Failed(Verdict.OUT_OF_MEMORY, Stage.CORRECTNESS, _NO_DEVICE_MEMORY)
        _raise_if_ours(answer)
        if answer["stage"] != Stage.DONE:
            return Failed(Verdict(answer["verdict"]), Stage(answer["stage"]), answer["feedback"])
        return None


def _raise_if_ours(answer: dict[str, Any]) -> None:
    if "unsupported" in answer:
        raise EvaluatorError(f"this task cannot be judged here: {answer['unsupported']}")
    if "fault" in answer:
        raise EvaluatorError("the device has not enough memory for this task")


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
