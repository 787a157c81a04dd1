"""One task on one device: what its judge is asked, the candidates that are started for it, and its reference's time.

Trusted side; no torch. No submission is judged here: whatever fails is our fault, an `EvaluatorError`.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import EvaluatorError
from ..sandbox.isolation import Isolation
from ..sandbox.limits import Limits
from ..settings import Settings
from ..tasks.roles import has_free_inputs
from ..tasks.task import Task
from .candidate_process import Candidate, CandidateSpec
from .child_programs import JudgeGone
from .devices import candidate_devices
from .places import Places
from .station import Station

CARD_TIMEOUT_S = 300.0
JUDGE_MARGIN_S = 240.0
"""On top of the submission's own limits: hidden inputs, comparisons and teardown are our time."""


def threads_for(kind: str, devices: int = 1) -> int:
    """Threads of a judge and of a candidate, on a host with so many devices of that kind.

    On the CPU device half of the cores: a parallel loop whose threads compete with anything else for a core waits for a
    time slice at its end, and is then ten times slower than it should be.
    """
    half = max(1, (os.cpu_count() or 1) // 2)
    return max(1, half // devices) if kind == "cpu" else min(8, half)


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


class TaskOnDevice:
    """A task of one size, on a device. Hold the device's lease for whatever asks the judge.

    Args:
        phases: Filled with seconds by phase.
    """

    def __init__(self, shop: Shop, station: Station, task: Task, phases: dict[str, float]) -> None:
        self.task = task
        self._shop, self._station, self._phases = shop, station, phases

    @property
    def modes(self) -> tuple[str, ...]:
        """How calls are run, in the order tried."""
        return ("graph", "eager") if self._shop.kind == "cuda" else ("eager",)

    @property
    def known_card(self) -> dict[str, Any] | None:
        """What the judge told of the task before; None if it was not asked yet."""
        return self._shop.cards.get((self._station.gpu_id, self._key))

    def spec(self, code: str, entry: str, card: Mapping[str, Any]) -> CandidateSpec:
        """What to start a candidate with.

        Args:
            entry: Class to construct.
        """
        shop, gpu_id = self._shop, self._station.gpu_id
        return CandidateSpec(
            code=code,
            entry=entry,
            precision=self.task.precision,
            init=card["init"],
            compile_timeout_s=shop.settings.compile_timeout_s,
            threads=shop.threads,
            visible_device=gpu_id.removeprefix("cuda:") if shop.kind == "cuda" else "",
            devices=candidate_devices(gpu_id),
            limits=Limits(host_memory_bytes=int(shop.settings.host_memory_gb * 1e9)),
            isolation=shop.isolation,
            shared_bytes=card["shared_bytes"] if shop.kind == "cpu" else 0,
        )

    def ask_card(self) -> dict[str, Any]:
        """What the judge knows of the task. No submission is involved: a judge that ended before is replaced.

        Raises:
            EvaluatorError: The task cannot be judged here, or no judge lives.
        """
        try:
            card = self._request_card()
        except JudgeGone:
            self.restart()
            try:
                card = self._request_card()
            except JudgeGone as error:
                raise EvaluatorError("the judge failed on the reference of this task") from error
        raise_if_ours(card)
        self._shop.cards[self._station.gpu_id, self._key] = card
        return card

    def restart(self) -> None:
        """New judge; what was stopped for the old one continues.

        Raises:
            EvaluatorError: None can be started.
        """
        self._shop.places.loud(self._station.gpu_id)
        self._station.restart()

    def require_baseline(self) -> None:
        """Time the reference in a process of its own, unless it is known.

        Raises:
            EvaluatorError: That failed.
        """
        station = self._station
        if self._key in station.baselines and station.judge.is_alive:
            return
        card = self.ask_card()
        if not card["has_baseline"]:
            self.time_reference(card)
        station.baselines.add(self._key)

    def time_reference(self, card: Mapping[str, Any]) -> None:
        """Time the reference in a process of its own.

        Raises:
            EvaluatorError: That failed.
        """
        spec = self.spec(self.task.source_for(self._shop.kind), "Model", card)
        with timed(self._phases, "baseline"):
            for mode in self.modes:
                answer = self._baseline_in(mode, spec)
                if not answer.get("not_capturable"):
                    break
        if answer.get("gone"):
            raise EvaluatorError("the process that timed the reference ended early")
        raise_if_ours(answer)

    def request(self, op: str, candidate: Candidate, extra: Mapping[str, object]) -> dict[str, Any]:
        """Have the judge do something with a candidate.

        Raises:
            JudgeGone: It ended.
        """
        settings = self._shop.settings
        return self._station.judge.request(
            op,
            settings.compile_timeout_s + settings.run_timeout_s + JUDGE_MARGIN_S,
            lambda event: self._serve(event, candidate.slot_index),
            (candidate.channel.sock.fileno(), candidate.pidfd),
            slot=candidate.slot_index,
            uid=candidate.uid,
            pid=candidate.pid,
            **self._fields(),
            **extra,
        )

    @property
    def _key(self) -> str:
        """Name of the task at the size for this kind of device."""
        return f"{self.task.task_id}:{hash(self.task.source_for(self._shop.kind))}"

    def _fields(self) -> dict[str, object]:
        """What every request about the task says of it."""
        task, settings = self.task, self._shop.settings
        return {
            "task_key": self._key,
            "task_id": task.task_id,
            "source": task.source_for(self._shop.kind),
            "precision": task.precision.value,
            "has_free_inputs": has_free_inputs(task.task_id),
            "floor_validated": task.floor_validated,
            "level": task.level,
            "policy": settings.policy.value,
            "compile_timeout_s": settings.compile_timeout_s,
            "run_timeout_s": settings.run_timeout_s,
        }

    def _request_card(self) -> dict[str, Any]:
        return self._station.judge.request("card", CARD_TIMEOUT_S, lambda _: None, (), **self._fields())

    def _baseline_in(self, mode: str, spec: CandidateSpec) -> dict[str, Any]:
        with self._shop.places.candidate(self._station.gpu_id, spec) as candidate:
            failed = candidate.load()
            if failed is not None:
                raise EvaluatorError(f"the reference of this task does not load: {failed.text}")
            try:
                return self.request("baseline", candidate, {"mode": mode})
            except JudgeGone as error:
                raise EvaluatorError("the judge failed while it timed the reference") from error

    def _serve(self, event: Mapping[str, Any], own_slot: int) -> None:
        """What the judge asks for about the other candidates of its device."""
        places, gpu_id = self._shop.places, self._station.gpu_id
        if event["event"] == "quiet":
            places.quiet(gpu_id, own_slot, bool(event["on"]))
        else:
            places.evict(gpu_id, own_slot)


@contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Add the seconds of the block to a phase."""
    start = time.monotonic()
    try:
        yield
    finally:
        phases[name] = phases.get(name, 0.0) + time.monotonic() - start


def raise_if_ours(answer: Mapping[str, Any]) -> None:
    """Refuse an answer of the judge that says that it could not.

    Raises:
        EvaluatorError: It does.
    """
    if "unsupported" in answer:
        raise EvaluatorError(f"this task cannot be judged here: {answer['unsupported']}")
    if "fault" in answer:
        raise EvaluatorError("the device has not enough memory for this task")
