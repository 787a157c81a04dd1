"""Which processes belong to a candidate, what they use and whether they run. Trusted code, part of the warden.

Reads /proc only. A candidate is found by uid, or, where it shares the server's uid, by descent and session: `setsid` is
denied inside, so what leaves the tree of parents still carries the session of its first process.
Not covered in weak mode: a process that leaves both, on a host without the system call filter.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

STOPPED = frozenset(b"Tt")
ENDED = frozenset(b"ZXx")
READ_BYTES = 4096
"""A status file has about 1.5 kB, a stat line under 400 bytes."""

MEMORY_FIELDS = (b"\nRssAnon:", b"\nVmSwap:", b"\nVmPTE:")
SHARED_FIELD = b"\nRssShmem:"


@dataclass(frozen=True, slots=True)
class Target:
    """The processes of one candidate."""

    uid: int | None = None
    root_pid: int | None = None
    """In weak mode: the first process, which leads a session of its own."""

    def __post_init__(self) -> None:
        """Refuse a target that would be everybody.

        Raises:
            ValueError: Not exactly one of both, or root, or init.
        """
        if (self.uid is None) == (self.root_pid is None):
            raise ValueError("a target is a uid or a first process")
        if (self.uid is not None and self.uid <= 0) or (self.root_pid is not None and self.root_pid <= 1):
            raise ValueError("neither root's processes nor init can be a target")


@dataclass(frozen=True, slots=True)
class Use:
    """What a candidate uses at one instant."""

    processes: int
    tasks: int
    zombies: int
    """Processes that have ended and whose parent has still to collect them. Not among the others."""

    private_bytes: int
    """Anonymous and swapped memory, and page tables. A page that a fork has not yet copied counts in both processes."""

    shared_bytes: int
    """Shared memory that is mapped and touched, the judge's arena included."""


class ProcessTable:
    """Cheap look at /proc. Remembers which processes were somebody else's, since that is nearly all of them."""

    def __init__(self) -> None:
        self._not_a_candidate: dict[int, int] = {}  # pid -> inode of its /proc directory, another one for a reused pid

    def pids(self, target: Target, *, certain: bool = False) -> list[int]:
        """Processes of the target, zombies included.

        Args:
            certain: Read every process anew, for a decision that must not rest on what was remembered.
        """
        if target.uid is None:
            return _descendants(target.root_pid or 0)
        if certain:
            self._not_a_candidate.clear()
        return [pid for pid in _all_pids() if self._has_uid(pid, target.uid)]

    def is_stopped(self, target: Target) -> bool:
        """Whether no task of the target can run. A new process between two looks makes this false."""
        before = self.pids(target)
        return all(_is_stopped(pid) for pid in before) and self.pids(target) == before

    def is_gone(self, target: Target) -> bool:
        """Whether no task of the target is left, except zombies that their parent has still to collect."""
        return not any(_is_alive(pid) for pid in self.pids(target, certain=True))

    def use(self, target: Target) -> Use:
        """Sum over the target's processes."""
        processes = tasks = zombies = private = shared = 0
        for pid in self.pids(target):
            status = _read(f"/proc/{pid}/status")
            if not status:
                continue
            # A first thread that has ended while others live is a zombie too, and its process is not.
            if _field(status, b"\nState:").split()[:1] == [b"Z"] and not _is_alive(pid):
                zombies += 1
                continue
            processes += 1
            tasks += _number(status, b"\nThreads:")
            private += sum(_number(status, name) for name in MEMORY_FIELDS)
            shared += _number(status, SHARED_FIELD)
        return Use(processes, tasks, zombies, private * 1024, shared * 1024)

    def _has_uid(self, pid: int, uid: int) -> bool:
        """Whether the process runs under the uid. Root may own the directory of one that does: then ask the status."""
        try:
            entry = os.stat(f"/proc/{pid}")
        except OSError:
            return False
        if entry.st_uid == uid:
            self._not_a_candidate.pop(pid, None)
            return True
        if entry.st_uid != 0 or self._not_a_candidate.get(pid) == entry.st_ino:
            return False
        uids = _field(_read(f"/proc/{pid}/status"), b"\nUid:").split()
        if str(uid).encode() in uids:
            return True
        if uids and len(self._not_a_candidate) < _MOST_REMEMBERED:
            self._not_a_candidate[pid] = entry.st_ino
        return False


_MOST_REMEMBERED = 65536


def _all_pids() -> list[int]:
    """Every process that there is now."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _descendants(root_pid: int) -> list[int]:
    """Processes of the session or the tree of `root_pid`."""
    parents: dict[int, int] = {}
    members: set[int] = set()
    for pid in _all_pids():
        stat = _stat_fields(f"/proc/{pid}/stat")
        if len(stat) < 4:
            continue
        parents[pid] = int(stat[1])
        if pid == root_pid or int(stat[3]) == root_pid:
            members.add(pid)
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in members and pid not in members}
        members |= children
        grown = bool(children)
    return sorted(members)


def _is_stopped(pid: int) -> bool:
    """Whether every thread of the process is stopped or has ended."""
    return all(state in STOPPED or state in ENDED for state in _thread_states(pid))


def _is_alive(pid: int) -> bool:
    """Whether a thread of the process has not ended."""
    return any(state not in ENDED for state in _thread_states(pid))


def _thread_states(pid: int) -> Iterator[int]:
    """State letter of each thread; none for a process that has vanished."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        fields = _stat_fields(f"/proc/{pid}/task/{thread}/stat")
        if fields:
            yield fields[0][0]


def _stat_fields(path: str) -> list[bytes]:
    """Fields of a stat file from the state on; the name before it may hold anything, parentheses too."""
    return _read(path).rpartition(b")")[2].split(maxsplit=5)


def _number(status: bytes, name: bytes) -> int:
    """Number in a line of a status file; 0 if the line is absent, as memory is for a zombie."""
    words = _field(status, name).split()
    return int(words[0]) if words else 0


def _field(status: bytes, name: bytes) -> bytes:
    """Rest of the first line that starts with `name`. The process's own name stands before the first newline."""
    return status.partition(name)[2].partition(b"\n")[0]


def _read(path: str) -> bytes:
    """Content of a small file, empty if it is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, READ_BYTES)
        finally:
            os.close(fd)
    except OSError:
        return b""
