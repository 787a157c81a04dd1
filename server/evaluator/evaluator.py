"""The evaluator of a server: static stage, a confined candidate, and a judge per device, for many sessions at once.

Trusted side; this process never imports torch, never opens CUDA and never runs submitted code. Import and host
compilation of one submission overlap with the evaluation of another; everything on the device goes through its lease.
"""

import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernel_env.terms import Language, Stage, Verdict

from ..errors import Busy, EvaluatorError
from ..sandbox.isolation import available
from ..sandbox.limits import Limits
from ..sandbox.slots import SlotPool
from ..sandbox.warden_client import WardenClient, start_warden
from ..settings import Settings
from ..tasks.roles import has_free_inputs
from ..tasks.task import Task
from . import feedback
from .canary import CANARY
from .candidate_process import KILL_TEXTS, Candidate, CandidateSpec, Failed
from .child_programs import Judge, JudgeGone, Zygote, program_environment
from .devices import candidate_devices, find_devices
from .interface import DeviceInfo, EvaluatorStatus
from .results import EvalResult, Roofline, Submission, Timing
from .station import Station
from .static_checks import check

logger = logging.getLogger(__name__)

SLOT_WAIT_S = 3600.0
SHARED_BYTES = 8 << 30
"""Most memory of a judge that a candidate on the CPU maps and that does not count as its own."""

CARD_TIMEOUT_S = 300.0
JUDGE_MARGIN_S = 240.0
"""On top of the submission's own limits: hidden inputs, comparisons and teardown are our time."""


class Evaluator:
    """Implements `interface.Evaluation` on real devices."""

    def __init__(self, settings: Settings) -> None:
        """Start the warden, the zygote and a judge per device; returns when all are ready.

        Raises:
            EvaluatorError: A device cannot be used, or isolation is demanded and cannot be given.
        """
        self._settings = settings
        self._lock = threading.Lock()
        self._running = 0
        self._is_closed = threading.Event()
        self._cards: dict[tuple[str, str], dict[str, Any]] = {}
        self._active: dict[str, set[int]] = {}
        gpu_ids = find_devices(settings.devices)
        self._kind = "cpu" if gpu_ids == ("cpu",) else "cuda"
        self._isolation = available(settings.uid_base)
        if settings.require_isolation and self._isolation.level != "strong":
            raise EvaluatorError("isolation is required and not given: " + "; ".join(self._isolation.missing))
        cores = os.cpu_count() or 1
        self._threads = max(1, cores if self._kind == "cpu" else min(8, cores // 2))
        with ExitStack() as stack:
            self._start(gpu_ids, stack)
            self._cleanup = stack.pop_all()

    def _start(self, gpu_ids: Sequence[str], stack: ExitStack) -> None:
        settings = self._settings
        root = Path(tempfile.mkdtemp(prefix="kernel-env-"))
        stack.callback(_remove, root)
        root.chmod(0o711)
        warden = start_warden(1 + len(gpu_ids))
        stack.callback(warden.close)
        self._warden = WardenClient(warden.sockets[0])
        self._pool = SlotPool(settings.uid_base, settings.slots, root / "slots", not self._isolation.uid, self._warden)
        stack.callback(self._pool.close)
        extra = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if self._kind == "cpu":
            extra["TRITON_INTERPRET"] = "1"
        else:
            extra["PYTORCH_ALLOC_CONF"] = "backend:native,expandable_segments:False"
        cache = root / "libraries"
        cache.mkdir(mode=0o755)
        self._zygote = Zygote(self._kind, cache, program_environment(self._kind, "", extra))
        stack.callback(self._zygote.close)
        self._stations = []
        for gpu_id, sock in zip(gpu_ids, warden.sockets[1:], strict=True):
            own = {"TRITON_CACHE_DIR": str(root / "judges" / gpu_id.replace(":", "-"))}
            environment = program_environment(self._kind, gpu_id, own)
            local = "cpu" if self._kind == "cpu" else "cuda:0"  # the judge sees only its own device

            def start_judge(local: str = local, environment: dict[str, str] = environment, sock: Any = sock) -> Judge:
                return Judge(local, sock, self._threads, environment)

            station = Station(gpu_id, start_judge)
            stack.callback(station.close)
            self._stations.append(station)
        self._zygote.wait_ready()
        for station in self._stations:
            station.wait_ready()
        stack.callback(self._warden.close)  # first to go: the warden then kills every candidate

    @property
    def devices(self) -> tuple[DeviceInfo, ...]:
        """Devices of this server."""
        return tuple(DeviceInfo(s.gpu_id, self._kind, s.name) for s in self._stations)

    @property
    def ceilings(self) -> dict[str, Any]:
        """Calibrated ceilings by device, for documentation and `doctor`."""
        return {s.gpu_id: dict(s.ceilings) for s in self._stations}

    def status(self) -> EvaluatorStatus:
        """Isolation and load."""
        waiting = sum(max(0, station.lease.waiting - 1) for station in self._stations)
        return EvaluatorStatus(self._isolation.level.value, self._isolation.missing, waiting, self._running)

    def close(self) -> None:
        """End every child process. Safe to call twice."""
        self._is_closed.set()
        with self._lock:
            cleanup, self._cleanup = self._cleanup, ExitStack()
        cleanup.close()

    def evaluate(
        self,
        task: Task,
        submission: Submission,
        *,
        session_id: str = "",
        start_within_s: float | None = None,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> EvalResult:
        """Judge one submission; see `interface.Evaluation.evaluate`."""
        start = time.monotonic()
        end = None if start_within_s is None else start + start_within_s
        phases: dict[str, float] = {}
        finding = check(submission)
        phases["static"] = time.monotonic() - start
        base = EvalResult(
            verdict=Verdict.REJECTED,
            stage=Stage.STATIC,
            feedback="",
            precision=task.precision,
            device=self._stations[0].name,
            gpu_id=self._stations[0].gpu_id,
            isolation=self._isolation.level.value,
            phases=phases,
        )
        if finding is not None:
            text = feedback.for_failure(finding.verdict, finding.message, "")
            return replace(base, verdict=finding.verdict, feedback=text, eval_s=phases["static"])
        with self._lock:
            self._running += 1
        try:
            station = self._choose_station()
            base = replace(base, device=station.name, gpu_id=station.gpu_id)
            work = _Work(self, station, task, session_id, end, is_cancelled, phases)
            result = work.run(submission, base)
        finally:
            with self._lock:
                self._running -= 1
        total = time.monotonic() - start
        return replace(result, queue_wait_s=work.waited_s, eval_s=total - work.waited_s, phases=phases)

    def _choose_station(self) -> Station:
        healthy = [station for station in self._stations if station.is_healthy]
        if not healthy:
            raise EvaluatorError("no device is usable any more")
        return min(healthy, key=lambda station: station.lease.waiting)

    def quiet(self, station: Station, own_slot: int, on: bool) -> None:
        """Stop every other candidate of a device, or let it continue."""
        with self._lock:
            others = tuple(self._active.get(station.gpu_id, set()) - {own_slot})
        if not others:
            return
        if on:
            self._warden.freeze(others)
        else:
            self._warden.thaw(others)

    @contextmanager
    def candidate(self, station: Station, spec: CandidateSpec, wait_s: float) -> Iterator[Candidate]:
        """A candidate in a slot of its own; killed and cleaned up at the end."""
        slot = self._pool.acquire(wait_s)
        try:
            running = Candidate(spec, slot, self._pool, self._zygote)
        except BaseException:
            self._pool.release(slot)
            raise
        with self._lock:
            self._active.setdefault(station.gpu_id, set()).add(slot.index)
        try:
            yield running
        finally:
            with self._lock:
                self._active[station.gpu_id].discard(slot.index)
            running.close()

    def spec(self, station: Station, task: Task, code: str, entry: str, init: Sequence[object]) -> CandidateSpec:
        """What to start a candidate with."""
        memory = int(self._settings.host_memory_gb * 1e9)
        return CandidateSpec(
            code=code,
            entry=entry,
            precision=task.precision,
            init=init,
            compile_timeout_s=self._settings.compile_timeout_s,
            threads=self._threads,
            visible_device=station.gpu_id.removeprefix("cuda:") if self._kind == "cuda" else "",
            devices=candidate_devices(station.gpu_id),
            limits=Limits(host_memory_bytes=memory),
            isolation=self._isolation,
            shared_bytes=SHARED_BYTES if self._kind == "cpu" else 0,
        )

    @property
    def kind(self) -> str:
        """`cpu` or `cuda`."""
        return self._kind

    @property
    def settings(self) -> Settings:
        """Limits of an evaluation."""
        return self._settings

    @property
    def cards(self) -> dict[tuple[str, str], dict[str, Any]]:
        """What is known of tasks, by device and task."""
        return self._cards


class _Work:
    """One evaluation past the static stage."""

    def __init__(
        self,
        evaluator: Evaluator,
        station: Station,
        task: Task,
        session_id: str,
        end: float | None,
        is_cancelled: Callable[[], bool] | None,
        phases: dict[str, float],
    ) -> None:
        self._evaluator, self._station, self._task = evaluator, station, task
        self._session_id, self._end, self._is_cancelled, self._phases = session_id, end, is_cancelled, phases
        self.waited_s = 0.0

    def run(self, submission: Submission, base: EvalResult) -> EvalResult:
        """Load, then judge under the lease."""
        card = self._card()
        spec = self._evaluator.spec(self._station, self._task, submission.code, "ModelNew", card["init"])
        killed_for = None
        with self._evaluator.candidate(self._station, spec, self._slot_wait_s()) as candidate:
            with self._timed("load"):
                failed = candidate.load()
            answer = None
            if failed is None:
                with self._lease():
                    self._require_baseline(self._task)
                    answer = self._judge(candidate, submission)
                failed = self._failure(answer, candidate)
            log_tail = candidate.log_tail() if failed is not None else ""
            if failed is not None:
                killed_for = candidate.close()
        if failed is not None:
            if killed_for is not None:
                verdict, text = KILL_TEXTS[killed_for]
                failed = replace(failed, verdict=verdict, text=text)
            text = feedback.for_failure(failed.verdict, failed.text, log_tail)
            error = answer.get("max_abs_err") if answer else None
            return replace(base, verdict=failed.verdict, stage=failed.stage, feedback=text, max_abs_err=error)
        assert answer is not None
        return _passed(answer, base)

    def _slot_wait_s(self) -> float:
        return SLOT_WAIT_S if self._end is None else max(0.0, self._end - time.monotonic())

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self._phases[name] = self._phases.get(name, 0.0) + time.monotonic() - start

    @contextmanager
    def _lease(self) -> Iterator[None]:
        start = time.monotonic()
        with self._station.lease.hold(self._session_id, self._end, self._is_cancelled):
            self.waited_s += time.monotonic() - start
            self._end = None  # begun: the budget is for beginning, not for ending
            yield

    def _request_fields(self, task: Task) -> dict[str, object]:
        source = task.source_for(self._evaluator.kind)
        return {
            "task_key": f"{task.task_id}:{hash(source)}",
            "task_id": task.task_id,
            "source": source,
            "precision": task.precision.value,
            "has_free_inputs": has_free_inputs(task.task_id),
            "floor_validated": task.floor_validated,
            "compile_timeout_s": self._evaluator.settings.compile_timeout_s,
            "run_timeout_s": self._evaluator.settings.run_timeout_s,
        }

    def _card(self) -> dict[str, Any]:
        key = (self._station.gpu_id, f"{self._task.task_id}:{hash(self._task.source_for(self._evaluator.kind))}")
        card = self._evaluator.cards.get(key)
        if card is None:
            with self._lease(), self._timed("card"):
                card = self._ask_card(self._task)
            self._evaluator.cards[key] = card
        return card

    def _ask_card(self, task: Task) -> dict[str, Any]:
        judge = self._station.judge
        try:
            card = judge.request("card", CARD_TIMEOUT_S, lambda on: None, **self._request_fields(task))
        except JudgeGone:
            self._station.restart()
            raise EvaluatorError("the judge failed on the reference of this task") from None
        _raise_if_ours(card)
        return card

    def _require_baseline(self, task: Task) -> None:
        """Time the reference in a process of its own, unless it is known. Hold the lease."""
        card = self._ask_card(task)
        if card["has_baseline"]:
            return
        with self._timed("baseline"):
            spec = self._evaluator.spec(
                self._station, task, task.source_for(self._evaluator.kind), "Model", card["init"]
            )
            with self._evaluator.candidate(self._station, spec, SLOT_WAIT_S) as candidate:
                failed = candidate.load()
                if failed is not None:
                    raise EvaluatorError(f"the reference of this task does not load: {failed.text}")
                answer = self._request("baseline", candidate, task, {})
        if answer.get("gone"):
            raise EvaluatorError("the process that timed the reference ended early")
        _raise_if_ours(answer)

    def _judge(self, candidate: Candidate, submission: Submission) -> dict[str, Any]:
        """The judge's answer; if it died, a verdict or our fault, as the canary decides."""
        interpreted = self._evaluator.kind == "cpu" and submission.language is Language.TRITON
        try:
            return self._request("evaluate", candidate, self._task, {"interpreted": interpreted})
        except JudgeGone:
            candidate.close()
            self._station.restart()
        try:
            self._require_baseline(CANARY)
        except EvaluatorError:
            self._station.strike("canary")
            raise
        return {
            "verdict": Verdict.DEVICE_FAULT,
            "stage": Stage.CORRECTNESS,
            "feedback": "the device or its judge failed while this submission ran; a trusted kernel runs there fine",
            "max_abs_err": None,
            "phases": {},
        }

    def _request(self, op: str, candidate: Candidate, task: Task, extra: dict[str, object]) -> dict[str, Any]:
        settings = self._evaluator.settings
        answer = self._station.judge.request(
            op,
            settings.compile_timeout_s + settings.run_timeout_s + JUDGE_MARGIN_S,
            lambda on: self._evaluator.quiet(self._station, candidate.slot_index, on),
            (candidate.channel.sock.fileno(), candidate.pidfd),
            slot=candidate.slot_index,
            **self._request_fields(task),
            **extra,
        )
        if op == "evaluate":
            self._phases.update(answer.get("phases", {}))
        return answer

    def _failure(self, answer: dict[str, Any], candidate: Candidate) -> Failed | None:
        if answer.get("gone"):
            return candidate.how_it_ended(Stage(answer["gone"]))
        if answer.get("fault") == "memory":
            text = "the device had not enough memory left for the inputs and outputs of the task"
            return Failed(Verdict.OUT_OF_MEMORY, Stage.CORRECTNESS, text)
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
    )


def _remove(root: Path) -> None:
    """Remove the directory of a server that ended. The slots' part is the pool's, and stays if it is not empty."""
    for directory in ("libraries", "judges"):
        shutil.rmtree(root / directory, ignore_errors=True)
    for path in (root / "slots", root):
        with suppress(OSError):
            path.rmdir()


__all__ = ["Busy", "Evaluator"]
