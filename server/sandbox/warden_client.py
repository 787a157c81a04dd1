"""Talks to the warden. Trusted code of the server and the judges; no submission comes near it."""

import contextlib
import itertools
import os
import socket
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import EvaluatorError
from . import program
from .warden_wire import PACKET_BYTES, KillReason, Op, Reply, Request, SlotCensus, Watch, decode_reply

FREEZE_DEADLINE_S = 0.5
"""A task inside a driver call stops when the call returns."""

KILL_DEADLINE_S = 5.0
"""Ending a process that holds tens of GiB of device memory takes the driver a second or more."""

ANSWER_MARGIN_S = 5.0
"""Beyond the deadline of a request, for a warden that waits for a core."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Outcome of a freeze or kill."""

    unsettled: tuple[int, ...]
    """Slots in which a task still ran, or still existed, at the deadline."""

    killed: tuple[tuple[int, KillReason], ...]
    """Slots that the warden had ended for a limit."""

    @property
    def ok(self) -> bool:
        """Whether every task of every slot obeyed."""
        return not self.unsettled


class WardenClient:
    """One connection to the warden. Threads may share it; requests go one after the other.

    Args:
        sock: Our end of the pair; belongs to the client from now on.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def watch(self, watch: Watch) -> None:
        """Look after a candidate from now on. With a uid: before the fork."""
        self._ask(Op.WATCH, watch=watch)

    def unwatch(self, slot: int) -> KillReason | None:
        """Forget a slot. Returns why its candidate had been ended, if it had."""
        return next((reason for _, reason in self._ask(Op.UNWATCH, (slot,)).killed), None)

    def freeze(self, slots: Iterable[int], *, deadline_s: float = FREEZE_DEADLINE_S) -> Settled:
        """Stop every task of the slots; returns once none can run."""
        return self._settle(Op.FREEZE, tuple(slots), deadline_s)

    def thaw(self, slots: Iterable[int]) -> None:
        """Let the slots run again."""
        self._ask(Op.THAW, tuple(slots))

    def kill(self, slots: Iterable[int], *, deadline_s: float = KILL_DEADLINE_S) -> Settled:
        """End every task of the slots; returns once none is left."""
        return self._settle(Op.KILL, tuple(slots), deadline_s)

    def census(self, slots: Iterable[int]) -> tuple[SlotCensus, ...]:
        """State of the slots, in the order asked for."""
        return self._ask(Op.CENSUS, tuple(slots)).census

    def close(self) -> None:
        """Hang up. The warden kills what this client had asked it to watch. Safe to call twice."""
        self._sock.close()

    def _settle(self, op: Op, slots: tuple[int, ...], deadline_s: float) -> Settled:
        """Ask for something that processes have to obey."""
        reply = self._ask(op, slots, deadline_s=deadline_s, may_fail=True)
        return Settled(unsettled=reply.unsettled, killed=reply.killed)

    def _ask(
        self,
        op: Op,
        slots: tuple[int, ...] = (),
        *,
        deadline_s: float = 0.0,
        watch: Watch | None = None,
        may_fail: bool = False,
    ) -> Reply:
        """Send one request and wait for its answer.

        Raises:
            EvaluatorError: The warden is gone or silent, or refused. After a silence the connection is closed, since a
                late answer would be taken for the next one.
        """
        request = Request(next(self._numbers), op, slots=slots, deadline_s=deadline_s, watch=watch)
        with self._lock:
            try:
                self._sock.settimeout(deadline_s + ANSWER_MARGIN_S)
                self._sock.send(request.encode())
                reply = decode_reply(self._sock.recv(PACKET_BYTES))
                if reply.number != request.number:
                    raise ValueError("answer to another request")
            except (OSError, ValueError) as error:
                self._sock.close()
                raise EvaluatorError(f"the warden did not answer: {op}") from error
        if not reply.ok and not (may_fail and reply.unsettled):
            raise EvaluatorError(f"the warden refused: {reply.error}")
        return reply


@dataclass(frozen=True, slots=True)
class WardenProcess:
    """A started warden."""

    process: subprocess.Popen[bytes]
    sockets: tuple[socket.socket, ...]
    """One per client, to be handed to `WardenClient` or passed on to a judge. The first is the server's."""

    def close(self) -> None:
        """End the warden and with it every candidate. Safe to call twice."""
        for sock in self.sockets:
            sock.close()
        try:
            self.process.wait(timeout=KILL_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_warden(clients: int) -> WardenProcess:
    """Start a warden that so many processes can talk to.

    Raises:
        EvaluatorError: It could not be started.
    """
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(clients)]
    theirs = [pair[1] for pair in pairs]
    try:
        process = subprocess.Popen(
            program.command("warden", *(str(sock.fileno()) for sock in theirs)),
            env=program.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[sock.fileno() for sock in theirs],
            start_new_session=True,
            cwd=os.path.sep,
        )
    except OSError as error:
        with contextlib.ExitStack() as stack:
            for ours, _ in pairs:
                stack.callback(ours.close)
        raise EvaluatorError("the warden could not be started") from error
    finally:
        for sock in theirs:
            sock.close()
    return WardenProcess(process, tuple(ours for ours, _ in pairs))
