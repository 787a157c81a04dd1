"""Freezes, kills and watches candidates by uid. A trusted program: `python -m <package>.warden FD [FD...]`.

Each FD is one end of a SOCK_SEQPACKET pair whose other end a trusted process holds: the server first, then judges.
The warden never reads anything that a candidate wrote. Without torch and with one thread, it answers within a
millisecond or so, and it can take another uid for the length of one system call.

Covered: processes that left their group or session, threads, forks during a signal, survivors.
Not covered: in weak mode, what `process_table` says. The warden ends, and kills all that it watches, when its first
client or its parent is gone; a judge that is gone takes the slots along that it had asked to watch.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass

from . import signals, watchdog
from .process_table import ProcessTable
from .warden_wire import PACKET_BYTES, KillReason, Op, Reply, Request, decode_request

SAMPLE_PERIOD_S = 0.05
WALK_BUDGET_S = 0.01
"""Part of a period spent on trees of files: a fifth of one core, and only while candidates make thousands of them."""

POLL_S = 0.0001
"""How often to look whether a signal was obeyed. Asleep in between: each thread needs a core to stop on."""

SLOW_POLL_S, SLOW_AFTER_S = 0.002, 0.01
"""The same for one that takes long: a process that frees much device memory, or that hangs in the driver."""

NUDGE_S = 0.02
"""A task that waits for a child which was stopped too never stops itself: let both run, and stop them again."""

NUDGE_LENGTH_S = 0.0005

LAST_KILL_S = 2.0


@dataclass(slots=True)
class Settling:
    """A freeze or kill whose processes have not all obeyed yet."""

    client: int
    request: Request
    since: float
    deadline: float
    nudge_at: float


class Warden:
    """The event loop and its state.

    Args:
        clients: Connected sockets; the first is the server's.
    """

    def __init__(self, clients: list[socket.socket]) -> None:
        self._clients = {client.fileno(): client for client in clients}
        self._first = clients[0].fileno()
        self._parent = os.getppid()
        self._table = ProcessTable()
        self._watched: dict[int, watchdog.Watched] = {}
        self._settling: list[Settling] = []
        self._next_sample = 0.0

    def run(self) -> None:
        """Serve until the server or the parent is gone, then kill everything that is watched."""
        try:
            while self._first in self._clients and os.getppid() == self._parent:
                for fd in self._readable(self._patience()):
                    self._serve(fd)
                self._settle()
                if time.monotonic() >= self._next_sample:
                    self._next_sample = time.monotonic() + SAMPLE_PERIOD_S
                    self._sample()
        finally:
            self._kill_all(list(self._watched))

    def _patience(self) -> float:
        """Seconds until there is something to do without a request."""
        if self._settling:
            newest = max(entry.since for entry in self._settling)
            return POLL_S if time.monotonic() < newest + SLOW_AFTER_S else SLOW_POLL_S
        return max(0.0, self._next_sample - time.monotonic()) if self._watched else 1.0

    def _readable(self, timeout_s: float) -> list[int]:
        """Clients with a request or a farewell."""
        # Not epoll: it rounds a timeout up to a whole millisecond.
        return select.select(list(self._clients), [], [], timeout_s)[0]

    def _serve(self, fd: int) -> None:
        """Answer one request, now or once its processes have obeyed."""
        try:
            packet = self._clients[fd].recv(PACKET_BYTES)
        except OSError:
            packet = b""
        if not packet:
            self._dismiss(fd)
            return
        try:
            request = decode_request(packet)
        except ValueError as error:
            self._reply(fd, Reply(0, ok=False, error=str(error)))
            return
        try:
            reply = self._act(fd, request)
        except (KeyError, ValueError, OSError) as error:
            reply = Reply(request.number, ok=False, error=f"{request.op}: {type(error).__name__}: {error}")
        if reply is not None:
            self._reply(fd, reply)

    def _act(self, fd: int, request: Request) -> Reply | None:
        """Do what is asked. None: the answer comes later.

        Raises:
            KeyError: A slot is not watched.
        """
        if unknown := [slot for slot in request.slots if slot not in self._watched]:
            raise KeyError(f"slots {unknown} are not watched")
        killed = self._killed(request)
        done = Reply(request.number, ok=True, killed=killed)
        match request.op:
            case Op.WATCH:
                if request.watch is None or request.watch.slot in self._watched:
                    raise ValueError("nothing to watch, or the slot is watched already")
                self._watched[request.watch.slot] = watchdog.begin(request.watch, fd)
                self._next_sample = 0.0
            case Op.UNWATCH:
                for slot in request.slots:
                    del self._watched[slot]
            case Op.CENSUS:
                found = tuple(watchdog.census(self._table, self._watched[slot]) for slot in request.slots)
                return Reply(request.number, ok=True, killed=killed, census=found)
            case Op.THAW:
                self._signal(request.slots, signal.SIGCONT)
                for slot in request.slots:
                    self._watched[slot].frozen = False
            case Op.FREEZE | Op.KILL:
                self._press(request)
                now = time.monotonic()
                if self._unsettled(request):
                    self._settling.append(Settling(fd, request, now, now + request.deadline_s, now + NUDGE_S))
                    return None
        return done

    def _killed(self, request: Request) -> tuple[tuple[int, KillReason], ...]:
        """Slots of the request that were ended for a limit."""
        found = ((slot, self._watched[slot].killed) for slot in request.slots if slot in self._watched)
        return tuple((slot, reason) for slot, reason in found if reason is not None)

    def _press(self, request: Request) -> None:
        """Send the signal of a freeze or kill."""
        self._signal(request.slots, signal.SIGSTOP if request.op is Op.FREEZE else signal.SIGKILL)
        for slot in request.slots:
            self._watched[slot].frozen = request.op is Op.FREEZE

    def _signal(self, slots: tuple[int, ...], number: int) -> None:
        """Signal the slots one after the other."""
        for slot in slots:
            watch = self._watched[slot].watch
            signals.send(self._table, watch.target, watch.spare_uid, number)

    def _unsettled(self, request: Request) -> tuple[int, ...]:
        """Slots that have not obeyed. One that nobody watches any more has."""
        has_obeyed = self._table.is_stopped if request.op is Op.FREEZE else self._table.is_gone
        slots = (slot for slot in request.slots if slot in self._watched)
        return tuple(slot for slot in slots if not has_obeyed(self._watched[slot].watch.target))

    def _settle(self) -> None:
        """Look again at what had not obeyed, and answer for what has, or is out of time."""
        waiting, self._settling = self._settling, []
        for entry in waiting:
            unsettled = self._unsettled(entry.request)
            now = time.monotonic()
            if not unsettled or now >= entry.deadline:
                killed = (
                    (slot, watched.killed) for slot, watched in self._watched.items() if slot in entry.request.slots
                )
                reasons = tuple((slot, reason) for slot, reason in killed if reason is not None)
                reply = Reply(entry.request.number, ok=not unsettled, unsettled=unsettled, killed=reasons)
                self._reply(entry.client, reply)
                continue
            if now >= entry.nudge_at:
                entry.nudge_at = now + NUDGE_S
                if entry.request.op is Op.FREEZE:
                    self._signal(unsettled, signal.SIGCONT)
                    time.sleep(NUDGE_LENGTH_S)
                self._signal(unsettled, signal.SIGSTOP if entry.request.op is Op.FREEZE else signal.SIGKILL)
            self._settling.append(entry)

    def _sample(self) -> None:
        """Look at every slot that runs, and end those over a limit. What was ended stays ended."""
        pending = []
        for watched in list(self._watched.values()):
            if watched.killed is not None:
                self._end(watched, watched.killed)
            elif not watched.frozen:
                try:
                    reason = watchdog.sample(self._table, watched)
                except OSError:  # its scratch directory is being removed
                    continue
                if reason is not None:
                    self._end(watched, reason)
                else:
                    pending.append(watched)
        self._walk(pending)

    def _walk(self, pending: list[watchdog.Watched]) -> None:
        """Walk over scratch directories in turns, until all are done, time is up, or somebody asks for something."""
        stop_at = time.monotonic() + WALK_BUDGET_S
        while pending and time.monotonic() < stop_at and not self._readable(0.0):
            watched = pending.pop(0)
            complete, reason = watchdog.walk_slice(watched)
            if reason is not None:
                self._end(watched, reason)
            elif not complete:
                pending.append(watched)

    def _end(self, watched: watchdog.Watched, reason: KillReason) -> None:
        """Kill a candidate and remember why."""
        watched.killed, watched.frozen = reason, False
        with contextlib.suppress(OSError):
            signals.send(self._table, watched.watch.target, watched.watch.spare_uid, signal.SIGKILL)

    def _dismiss(self, fd: int) -> None:
        """Forget a client that is gone, with the candidates it had asked to watch."""
        self._clients.pop(fd).close()
        self._settling = [entry for entry in self._settling if entry.client != fd]
        if fd != self._first:
            self._kill_all([slot for slot, watched in self._watched.items() if watched.owner == fd])

    def _kill_all(self, slots: list[int]) -> None:
        """Kill until nothing is left, or for a while; forget the slots."""
        request = Request(0, Op.KILL, slots=tuple(slots))
        stop_at = time.monotonic() + LAST_KILL_S
        while slots and time.monotonic() < stop_at:
            self._press(request)
            if not self._unsettled(request):
                break
            time.sleep(POLL_S)
        for slot in slots:
            del self._watched[slot]

    def _reply(self, fd: int, reply: Reply) -> None:
        """Send, unless the client is gone: that shows at the next read."""
        client = self._clients.get(fd)
        if client is not None:
            with contextlib.suppress(OSError):
                client.send(reply.encode(), socket.MSG_DONTWAIT)


def main() -> None:
    """Serve the sockets named on the command line."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        # A key press or a stop of the whole group must not end the one process that cleans up: its parent's end does.
        signal.signal(number, signal.SIG_IGN)
    # A candidate may keep every core busy, and stopping it must not wait its turn. Needs CAP_SYS_NICE, which a
    # container may lack; the next best then is to be one process among many.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
        file.write(b"-1000")  # allowed with CAP_SYS_RESOURCE only
    Warden([socket.socket(fileno=int(argument)) for argument in sys.argv[1:]]).run()


if __name__ == "__main__":
    main()
