"""One JSON line per reset and per step, for whoever operates the server. Holds no code, no seed and no prompt.

Lines go to standard output and, if named, to a file. Neither may ever hold up or fail an evaluation: some launchers
read the server's output through a pipe that they never drain, and then every further write would block for ever.
"""

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_env.models import KernelObservation

logger = logging.getLogger(__name__)

STDOUT_FD = 1
STDOUT_BACKLOG = 1000
"""Lines kept for a slow reader of standard output; later ones are dropped there, never in the file."""

FLUSH_S = 0.5


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log. Fields that do not apply are null."""

    event: str
    """`reset` or `step`."""

    time_unix_s: float
    session_id: str
    episode_id: str | None
    task_id: str | None
    level: int | None
    language: str | None
    turn: int
    max_turns: int
    done: bool
    stage: str | None = None
    verdict: str | None = None
    reward: float | None = None
    speedup: float | None = None
    roofline_frac: float | None = None
    t_new_ms: float | None = None
    own_share: float | None = None
    roofline_violation: bool = False
    suspicious: bool = False
    cached: bool = False
    gpu_id: str | None = None
    queue_wait_s: float | None = None
    eval_s: float | None = None
    phases: dict[str, float] | None = None
    code_sha: str | None = None
    infra_error: str | None = None


def reset_event(session_id: str, observation: KernelObservation) -> Event:
    """Line for an episode that began."""
    return _event("reset", session_id, observation)


def step_event(session_id: str, observation: KernelObservation, code_sha: str) -> Event:
    """Line for a step that was answered."""
    return _event("step", session_id, observation, code_sha)


class EventLog:
    """Writes events. Safe to share between threads; `write` returns at once whatever the readers do.

    Args:
        path: File to append to; created if missing.
        fd: Where lines go besides; None for nowhere.
        observe: Called with every event; must return at once and not raise.
    """

    def __init__(
        self, path: Path | None = None, fd: int | None = STDOUT_FD, observe: Callable[[Event], None] | None = None
    ) -> None:
        self._observe = observe
        self._path = path
        self._fd = fd
        self._lines: queue.Queue[bytes | None] = queue.Queue(maxsize=STDOUT_BACKLOG)
        self._start = threading.Lock()
        self._writer: threading.Thread | None = None
        self._has_warned = False

    def write(self, event: Event) -> None:
        """Log one event. Never raises."""
        if self._observe is not None:
            self._observe(event)
        line = (json.dumps(asdict(event), separators=(",", ":")) + "\n").encode()
        if self._path is not None:
            self._append(self._path, line)
        if self._fd is not None:
            self._ensure_writer(self._fd)
            try:
                self._lines.put_nowait(line)
            except queue.Full:
                self._warn("event_dropped reason=reader_too_slow")

    def close(self) -> None:
        """Give the reader of the output half a second to take what is left."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            self._lines.put_nowait(None)
        except queue.Full:
            return  # nobody reads: nothing to wait for
        writer.join(FLUSH_S)

    def _append(self, path: Path, line: bytes) -> None:
        try:
            # One write per line on an O_APPEND file: lines of several servers do not mix. Opened anew each time, so
            # that a rotated log is followed.
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.write(fd, line)
            finally:
                os.close(fd)
        except OSError as error:
            self._warn(f"event_log_failed error={error.strerror}")

    def _ensure_writer(self, fd: int) -> None:
        with self._start:
            if self._writer is None:
                # A daemon: blocked in a write to a full pipe, it must not keep the process alive.
                self._writer = threading.Thread(target=self._drain, args=(fd,), name="event-log", daemon=True)
                self._writer.start()

    def _drain(self, fd: int) -> None:
        while (line := self._lines.get()) is not None:
            try:
                while line:
                    line = line[os.write(fd, line) :]
            except OSError:
                self._fd = None  # the reader is gone for good (EPIPE, EBADF)
                return

    def _warn(self, message: str) -> None:
        """Once per server: a full disk must not fill the other log as well."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning("%s further=silent", message)


def _event(name: str, session_id: str, seen: KernelObservation, code_sha: str | None = None) -> Event:
    return Event(
        event=name,
        time_unix_s=round(time.time(), 3),
        session_id=session_id,
        episode_id=seen.episode_id,
        task_id=seen.task_id,
        level=seen.level,
        language=seen.language,
        turn=seen.turn,
        max_turns=seen.max_turns,
        done=seen.done,
        stage=seen.stage,
        verdict=seen.verdict,
        reward=None if seen.reward is None else float(seen.reward),
        speedup=seen.speedup,
        roofline_frac=seen.roofline_frac,
        t_new_ms=seen.t_new_ms,
        own_share=seen.own_share,
        roofline_violation=seen.roofline_violation,
        suspicious=seen.suspicious,
        cached=seen.cached,
        gpu_id=seen.gpu_id,
        queue_wait_s=seen.queue_wait_s,
        eval_s=seen.eval_s,
        phases=seen.phases or None,
        code_sha=code_sha,
        infra_error=seen.infra_error,
    )
