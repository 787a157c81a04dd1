"""Hands out places for candidates: a uid, a scratch directory and a log, never shared and never used twice uncleaned.

Trusted code of the server; knows nothing of submissions. A slot whose candidate cannot be killed, or whose scratch
directory cannot be removed, is kept back until that succeeds.
"""

import contextlib
import logging
import os
import secrets
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from ..errors import Busy, EvaluatorError
from . import scratch
from .limits import Limits
from .uids import Claims
from .warden_client import WardenClient
from .warden_wire import KillReason, Watch

REMOVAL_DEADLINE_S = 10.0
"""A tree at the limit of inodes takes under a second on a disk that is not overloaded."""

COLLECTION_DEADLINE_S = 2.0
"""An init process collects orphans at once; without one nobody ever does."""

RETRY_PERIOD_S = 1.0
"""How often a waiting caller tries to clean what is held back."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one candidate."""

    index: int
    uid: int | None
    """None in weak mode."""

    gid: int | None
    """The same number."""

    spare_uid: int | None
    scratch: str
    log: str
    """Empty file that only we can open; outside of the scratch directory."""


class SlotPool:
    """All slots of a server. Threads may share it.

    Args:
        uid_base: First uid to use. Uids that another server on this host holds are skipped.
        count: Candidates at a time.
        root: Directory for scratch space and logs, of this server alone.
        weak: No uids.
        warden: Connection that stays open as long as the pool.
    Raises:
        EvaluatorError: No uids are free, or the root cannot be used.
    """

    def __init__(self, uid_base: int, count: int, root: Path, weak: bool, warden: WardenClient) -> None:
        if count < 1 or (not weak and uid_base <= 0):
            raise ValueError(f"expected at least one slot and uids above 0, got {count} slots from uid {uid_base}")
        self._root, self._warden = root, warden
        scratch.prepare_root(root, for_other_users=not weak)
        self._logs = root / "logs"
        self._logs.mkdir(mode=0o700, exist_ok=True)
        self._claims = None if weak else Claims(uid_base, count + 1)
        uids = [] if self._claims is None else self._claims.uids
        self._uids: list[int | None] = [None] * count if weak else list(uids[:count])
        self._spare_uid = None if weak else uids[count]
        self._free: list[int] = list(range(count))
        self._held_back: dict[int, Slot] = {}
        self._watched: set[int] = set()
        self._changed = threading.Condition()

    def acquire(self, timeout_s: float) -> Slot:
        """Take a slot, with a fresh scratch directory and log.

        Raises:
            Busy: None became free in time.
        """
        stop_at = time.monotonic() + timeout_s
        while True:
            with self._changed:
                patience_s = min(RETRY_PERIOD_S, max(0.0, stop_at - time.monotonic()))
                if self._changed.wait_for(self._has_free, patience_s):
                    index = self._free.pop(0)
                    break
                stuck = list(self._held_back.values())
            for slot in stuck:
                self._recycle(slot)
            if time.monotonic() >= stop_at and not self._free:
                raise Busy("every place for a candidate is taken")
        try:
            uid = self._uids[index]
            log = self._logs / f"{index}-{secrets.token_hex(8)}"
            os.close(os.open(log, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            place = scratch.make(self._root, f"slot{index}", uid, uid)
        except OSError as error:
            self._give_back(index)
            raise EvaluatorError("no scratch directory could be made") from error
        return Slot(index, uid, uid, self._spare_uid, place, str(log))

    def watch(self, slot: Slot, limits: Limits, *, root_pid: int | None = None, shared_bytes: int = 0) -> None:
        """Put the slot under the warden: before the fork where it has a uid, right after it in weak mode.

        Args:
            root_pid: First process of the candidate; used in weak mode only.
            shared_bytes: Size of the judge's shared memory that the candidate will map.
        Raises:
            EvaluatorError: The warden is gone.
        """
        self._warden.watch(
            Watch(
                slot=slot.index,
                scratch=slot.scratch,
                log=slot.log,
                limits=limits,
                uid=slot.uid,
                spare_uid=slot.spare_uid,
                root_pid=None if slot.uid is not None else root_pid,
                shared_bytes=shared_bytes,
            )
        )
        self._watched.add(slot.index)

    def release(self, slot: Slot) -> KillReason | None:
        """Kill what is left of the candidate, make sure that nothing is, and remove its files.

        Returns:
            Why the warden had ended the candidate, if it had.
        Raises:
            EvaluatorError: The warden is gone. The slot is kept back.
        """
        with self._changed:
            self._held_back[slot.index] = slot
        return self._recycle(slot)

    @property
    def held_back(self) -> int:
        """Slots that wait for a process to die or a directory to be removed, or are just being cleaned."""
        with self._changed:
            return len(self._held_back)

    def close(self) -> None:
        """Give the uids back. Release all slots before. Safe to call twice."""
        if self._claims is not None:
            self._claims.close()
        with contextlib.suppress(OSError):
            self._logs.rmdir()
            self._root.rmdir()

    def _has_free(self) -> bool:
        """Whether a slot is free."""
        return bool(self._free)

    def _recycle(self, slot: Slot) -> KillReason | None:
        """Clean a slot that is held back, and free it if that succeeds."""
        reason = None
        if slot.index in self._watched:
            settled = self._warden.kill((slot.index,))
            if not settled.ok:
                logger.error("slot_held_back index=%d reason=process", slot.index)
                return next((why for _, why in settled.killed), None)
            self._await_collection(slot)
            reason = self._warden.unwatch(slot.index)
            self._watched.discard(slot.index)
        if not scratch.remove(slot.scratch, deadline_s=REMOVAL_DEADLINE_S):
            logger.error("slot_held_back index=%d reason=scratch", slot.index)
            return reason
        with contextlib.suppress(FileNotFoundError):
            os.unlink(slot.log)
        self._give_back(slot.index)
        return reason

    def _await_collection(self, slot: Slot) -> None:
        """Give parents and init time to collect zombies, which count against the next candidate's processes."""
        stop_at = time.monotonic() + COLLECTION_DEADLINE_S
        while self._warden.census((slot.index,))[0].zombies:
            if time.monotonic() > stop_at:
                logger.warning("zombies_left index=%d hint=%s", slot.index, "run an init process that collects orphans")
                return
            time.sleep(0.005)

    def _give_back(self, index: int) -> None:
        """Make a slot available, once."""
        with self._changed:
            self._held_back.pop(index, None)
            if index not in self._free:
                self._free.append(index)
            self._changed.notify()
