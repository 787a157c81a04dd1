"""One candidate from its fork to the removal of its files, as the evaluator holds it. Trusted side; no torch.

The source is written before the fork; the candidate imports it, which may run a compiler for minutes. That part needs
no lease of the device. The judge then takes over the channel.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_env.terms import Precision, Stage, Verdict

from ..errors import EvaluatorError
from ..protocol import (
    Channel,
    ChannelClosed,
    DeadlineExceeded,
    MalformedReply,
    Reply,
    decode,
    encode_command,
)
from ..sandbox.isolation import Isolation
from ..sandbox.limits import Limits
from ..sandbox.slots import Slot, SlotPool
from ..sandbox.warden_wire import KillReason
from ..verdicts import NOT_ITS_CHANNEL, verdict_of
from . import feedback
from .child_programs import Zygote

SOURCE_NAME = "submission.py"
READY_TIMEOUT_S = 60.0
"""From the fork to the confined process: 10 ms, unless the host is overloaded."""

END_TIMEOUT_S = 2.0
"""From the end of its channel to the end of a process: the kernel takes its memory apart in between."""

KILL_TEXTS = {
    KillReason.MEMORY: (Verdict.OUT_OF_MEMORY, "the submission used more host memory than it may"),
    KillReason.SCRATCH: (Verdict.OUT_OF_MEMORY, "the submission wrote more files than it may"),
    KillReason.LOG: (Verdict.RUNTIME_ERROR, "the submission printed more than it may"),
    KillReason.PROCESSES: (Verdict.RUNTIME_ERROR, "the submission started more processes than it may"),
}


@dataclass(frozen=True, slots=True)
class Failed:
    """A candidate's end, as a verdict."""

    verdict: Verdict
    stage: Stage
    text: str


@dataclass(frozen=True, slots=True)
class CandidateSpec:
    """What a candidate is started with."""

    code: str
    entry: str
    """Class to construct: `ModelNew`, or `Model` for the reference itself."""

    precision: Precision
    init: Sequence[object]
    """Constructor arguments as the judge encoded them."""

    compile_timeout_s: float
    threads: int
    visible_device: str
    devices: tuple[str, ...]
    limits: Limits
    isolation: Isolation
    shared_bytes: int
    """Memory of the judge it will map."""


class Candidate:
    """A running candidate."""

    def __init__(
        self, spec: CandidateSpec, slot: Slot, pool: SlotPool, zygote: Zygote, paused_s: Callable[[], float]
    ) -> None:
        """Write the source, fork, and wait until the process is confined.

        Args:
            paused_s: Seconds for which it was stopped so far for the sake of others.
        Raises:
            EvaluatorError: The process could not be started. No line of the submission has run.
        """
        self._spec, self._slot, self._pool, self._zygote, self._paused_s = spec, slot, pool, zygote, paused_s
        self.slot_index = slot.index
        self.uid = slot.uid
        self.pidfd = -1
        self.is_evicted = False
        """Ended for the sake of another; how it ended says nothing about the submission."""

        self._is_closed = False
        self._killed_for: KillReason | None = None
        ours, theirs = Channel.pair()
        self.channel = Channel(ours)
        try:
            try:
                self.pid = self._fork(theirs.fileno())
            finally:
                theirs.close()
            self.pidfd = os.pidfd_open(self.pid)
            if slot.uid is None:
                pool.watch(slot, spec.limits, root_pid=self.pid, shared_bytes=spec.shared_bytes)
            self._await_ready()
        except BaseException as error:
            self._close_descriptors()
            if isinstance(error, OSError):
                raise EvaluatorError(f"a candidate could not be started: {error.strerror}") from error
            raise

    def _fork(self, channel_fd: int) -> int:
        spec, slot = self._spec, self._slot
        source = Path(slot.scratch) / SOURCE_NAME
        source.write_text(spec.code, encoding="utf-8", newline="\n")
        source.chmod(0o644)
        if slot.uid is not None:
            self._pool.watch(slot, spec.limits, shared_bytes=spec.shared_bytes)
        log_fd = os.open(slot.log, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            return self._zygote.spawn(
                channel_fd,
                log_fd,
                scratch=slot.scratch,
                uid=slot.uid,
                gid=slot.gid,
                threads=spec.threads,
                visible_device=spec.visible_device,
                devices=list(spec.devices),
                limits=asdict(spec.limits),
                isolation=asdict(spec.isolation),
            )
        finally:
            os.close(log_fd)

    def _await_ready(self) -> None:
        try:
            packet = decode(self.channel.receive(READY_TIMEOUT_S))
        except (ChannelClosed, DeadlineExceeded, MalformedReply) as error:
            raise EvaluatorError("a candidate ended before it was confined") from error
        if packet.kind is not Reply.READY:
            raise EvaluatorError("a candidate did not say that it is confined")

    def load(self) -> Failed | None:
        """Import and construct. Returns what went wrong, if anything."""
        path = str(Path(self._slot.scratch) / SOURCE_NAME)
        command = encode_command(
            "load",
            path=path,
            entry=self._spec.entry,
            init=list(self._spec.init),
            precision=self._spec.precision.value,
        )
        limit_s = self._spec.compile_timeout_s
        try:
            self.channel.send(command, timeout_s=limit_s)
            packet = decode(self._receive_running(limit_s))
        except ChannelClosed:
            return self.how_it_ended(Stage.COMPILE)
        except DeadlineExceeded:
            return Failed(Verdict.TIMEOUT, Stage.COMPILE, f"import and construction took more than {limit_s:.0f} s")
        except MalformedReply:
            return Failed(Verdict.RUNTIME_ERROR, Stage.COMPILE, NOT_ITS_CHANNEL)
        if packet.kind is Reply.FAILED:
            return Failed(verdict_of(packet.failure, Stage.COMPILE), Stage.COMPILE, packet.text)
        if packet.kind is not Reply.LOADED:
            return Failed(Verdict.RUNTIME_ERROR, Stage.COMPILE, NOT_ITS_CHANNEL)
        return None

    def _receive_running(self, limit_s: float) -> bytes:
        """Next packet, within so many seconds in which the candidate was not stopped for others."""
        start, paused_before_s = time.monotonic(), self._paused_s()
        while True:
            ran_s = time.monotonic() - start - (self._paused_s() - paused_before_s)
            try:
                return self.channel.receive(max(limit_s - ran_s, 0.001))
            except DeadlineExceeded:
                if time.monotonic() - start - (self._paused_s() - paused_before_s) >= limit_s:
                    raise

    def how_it_ended(self, stage: Stage) -> Failed:
        """Verdict for a process that is gone, from what its parent saw."""
        code = self._zygote.exit_code(self.pid) if self._ends_soon() else None
        text = "the process closed its connection"
        if code is not None and code < 0:
            text = f"the process was ended by signal {_signal_name(-code)}"
        elif code is not None:
            text = f"the process ended by itself with exit status {code}"
        return Failed(verdict_of(None, stage), stage, text)

    def _ends_soon(self) -> bool:
        """Wait for the process, whose connection is closed, to end."""
        poll = select.poll()
        with suppress(ValueError):  # the descriptor is closed by who ended it
            poll.register(self.pidfd, select.POLLIN)  # readable from the end on
            return bool(poll.poll(1000 * END_TIMEOUT_S))
        return True

    def log_tail(self) -> str:
        """End of what it printed."""
        with suppress(OSError), Path(self._slot.log).open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 4 * feedback.MAX_LOG_CHARS))
            return feedback.tail_of(log.read())
        return ""

    def close(self) -> KillReason | None:
        """Kill all of it and remove its files; returns why the warden had killed it, if it had. Safe to call twice.

        Raises:
            EvaluatorError: The warden is gone.
        """
        # Once only: the slot may be somebody else's by the second call, whose process that would kill.
        if not self._is_closed:
            self._is_closed = True
            self._close_descriptors()
            self._killed_for = self._pool.release(self._slot)
        return self._killed_for

    def _close_descriptors(self) -> None:
        self.channel.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
