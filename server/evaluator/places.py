"""Where candidates run: a bounded number of places, which of them are running, and who is stopped for whom.

Trusted side; no torch. Submissions share `slots` places. The reference has one place per device beside them, because it
is timed under the device's lease while submissions that wait for that lease keep theirs.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import Busy, EvaluatorError
from ..sandbox.slots import SlotPool
from ..sandbox.warden_client import WardenClient
from ..sandbox.warden_wire import KillReason
from .candidate_process import Candidate, CandidateSpec
from .child_programs import Zygote
from .lease import Lease

logger = logging.getLogger(__name__)

REFERENCE_WAIT_S = 60.0
"""The place of the reference is free unless its last use could not be cleaned up."""


class Places:
    """Candidates of all devices.

    Args:
        slots: Submissions at a time.
        max_waiting: Submissions that may wait for a place.
        pool: Has a slot more per device.
        start_zygote: Starts a zygote; called again when the last one has ended.
    """

    def __init__(
        self,
        slots: int,
        max_waiting: int,
        pool: SlotPool,
        warden: WardenClient,
        start_zygote: Callable[[], Zygote],
    ) -> None:
        self._pool, self._warden, self._start_zygote = pool, warden, start_zygote
        self.free = Lease(slots, max_waiting)
        self._zygote_lock = threading.Lock()
        self._zygote = start_zygote()
        self._is_closed = threading.Event()
        # Held while candidates are stopped or continued, so that none of them is cleaned away meanwhile.
        self._lock = threading.Lock()
        self._active: dict[str, dict[int, _Running]] = {}
        self._quiet: dict[str, int] = {}

    def wait_ready(self) -> None:
        """Wait for the zygote.

        Raises:
            EvaluatorError: It cannot be started.
        """
        self._zygote.wait_ready()

    @contextmanager
    def reserved(self, session_id: str, end: float | None, is_cancelled: Callable[[], bool] | None) -> Iterator[None]:
        """Wait for the right to run a submission, and hold it.

        Args:
            session_id: Whose turn it is.
            end: Give up at this monotonic time.
        Raises:
            Busy: `end` passed, too many wait already, or the caller is no longer interested.
            EvaluatorError: The evaluator was closed meanwhile.
        """

        def is_over() -> bool:
            self._refuse_if_closed()
            return is_cancelled is not None and is_cancelled()

        with self.free.hold(session_id, end, is_over):
            yield

    @contextmanager
    def candidate(self, gpu_id: str, spec: CandidateSpec) -> Iterator[Candidate]:
        """A candidate in a slot of its own; killed and cleaned up at the end.

        Raises:
            EvaluatorError: It could not be started.
        """
        zygote = self._living_zygote()
        try:
            slot = self._pool.acquire(REFERENCE_WAIT_S)
        except Busy as error:  # there is a slot for everybody who holds a place
            raise EvaluatorError("places for candidates could not be cleaned up") from error
        pauses = _Pauses()
        try:
            running = Candidate(spec, slot, self._pool, zygote, pauses.seconds)
        except BaseException:
            self._pool.release(slot)
            raise
        try:
            with self._lock:
                self._active.setdefault(gpu_id, {})[slot.index] = _Running(running, pauses)
                if gpu_id in self._quiet:
                    self._stop(gpu_id, (slot.index,))
            yield running
        finally:
            self.end(gpu_id, running)

    def end(self, gpu_id: str, candidate: Candidate) -> KillReason | None:
        """End a candidate; returns why the warden had ended it, if it had. Safe to call twice.

        Raises:
            EvaluatorError: The warden is gone.
        """
        with self._lock:
            entry = self._active.get(gpu_id, {}).get(candidate.slot_index)
            if entry is not None and entry.candidate is candidate:  # else the slot is somebody else's by now
                del self._active[gpu_id][candidate.slot_index]
        return candidate.close()

    def quiet(self, gpu_id: str, own_slot: int, on: bool) -> None:
        """Stop every other candidate of a device, those that start later too, or let them continue.

        Raises:
            EvaluatorError: The warden is gone.
        """
        with self._lock:
            others = tuple(index for index in self._active.get(gpu_id, {}) if index != own_slot)
            if on:
                self._quiet[gpu_id] = own_slot
                self._stop(gpu_id, others)
            else:
                self._quiet.pop(gpu_id, None)
                self._continue(gpu_id, others)

    def evict(self, gpu_id: str, own_slot: int) -> None:
        """End every other candidate of a device, which whoever runs them is to start again.

        Raises:
            EvaluatorError: The warden is gone.
        """
        with self._lock:
            others = {index: entry for index, entry in self._active.get(gpu_id, {}).items() if index != own_slot}
            for entry in others.values():
                entry.candidate.is_evicted = True
            if others:
                logger.warning("evicted", extra={"gpu_id": gpu_id, "candidates": len(others)})
                self._warden.kill(tuple(others))

    def loud(self, gpu_id: str) -> None:
        """Whatever was stopped for a judge that ended continues."""
        if gpu_id in self._quiet:
            self.quiet(gpu_id, -1, on=False)

    def _stop(self, gpu_id: str, slots: tuple[int, ...]) -> None:
        if slots:
            for index in slots:
                self._active[gpu_id][index].pauses.begin()
            self._warden.freeze(slots)

    def _continue(self, gpu_id: str, slots: tuple[int, ...]) -> None:
        if slots:
            self._warden.thaw(slots)
            for index in slots:
                self._active[gpu_id][index].pauses.end()

    def _living_zygote(self) -> Zygote:
        with self._zygote_lock:
            if not self._zygote.is_alive:
                self._zygote.close()
                self._refuse_if_closed()
                logger.error("zygote_restart")
                self._zygote = self._start_zygote()
                self._zygote.wait_ready()
            self._refuse_if_closed()
            return self._zygote

    def _refuse_if_closed(self) -> None:
        if self._is_closed.is_set():
            raise EvaluatorError("the evaluator is closed")

    def close(self) -> None:
        """End the zygote and with it every candidate's first process. Safe to call twice."""
        self._is_closed.set()
        self._zygote.close()  # without the lock: one that is being started may take minutes, and ends with us


class _Pauses:
    """How long a candidate was stopped for the sake of others: time that does not count against its limits."""

    def __init__(self) -> None:
        self._total_s = 0.0
        self._since: float | None = None

    def begin(self) -> None:
        if self._since is None:
            self._since = time.monotonic()

    def end(self) -> None:
        since, self._since = self._since, None
        if since is not None:
            self._total_s += time.monotonic() - since

    def seconds(self) -> float:
        since = self._since
        return self._total_s + (0.0 if since is None else time.monotonic() - since)


@dataclass(frozen=True, slots=True)
class _Running:
    """A candidate that may be stopped."""

    candidate: Candidate
    pauses: _Pauses
