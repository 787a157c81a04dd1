"""Decides when a candidate has used too much. Trusted code, part of the warden.

Covered: memory, tasks, log and scratch of all processes together, deleted files that are still open included.
Not covered: host memory that the CUDA driver pins, which belongs to no process; what is written between two samples;
deleted files while the file system has lost less than one limit since the candidate began.
"""

import os
from dataclasses import dataclass, field

from .disk_usage import DiskUse, Walk, deleted_bytes
from .process_table import ProcessTable, Use
from .signals import assumed
from .warden_wire import KillReason, SlotCensus, Watch

SLICE_ENTRIES = 250
"""Files looked at without a break: about 1 ms, the longest that a request waits for a walk."""


TASK_MARGIN = 8
"""The kernel refuses the fork at the limit; a candidate is ended only where that did not hold."""


@dataclass(slots=True)
class Watched:
    """A slot under watch and what was seen of it."""

    watch: Watch
    owner: int
    """Descriptor of the client that asked for it."""

    free_at_start: int
    """Free bytes of the scratch file system when the watch began."""

    frozen: bool = False
    killed: KillReason | None = None
    use: Use = field(default_factory=lambda: Use(0, 0, 0, 0, 0))
    disk: DiskUse = field(default_factory=lambda: DiskUse(0, 0))
    walk: Walk | None = None

    @property
    def memory_bytes(self) -> int:
        """Memory that counts: the judge's arena is subtracted once, since only the first process maps it."""
        return self.use.private_bytes + max(0, self.use.shared_bytes - self.watch.shared_bytes)


def begin(watch: Watch, owner: int) -> Watched:
    """Start to watch.

    Raises:
        OSError: There is no such scratch directory.
    """
    return Watched(watch, owner, free_at_start=_free_bytes(watch.scratch))


def sample(table: ProcessTable, watched: Watched) -> KillReason | None:
    """Look at everything but the tree of files. Returns the first limit that is exceeded."""
    limits = watched.watch.limits
    watched.use = table.use(watched.watch.target)
    if watched.memory_bytes > limits.host_memory_bytes:
        return KillReason.MEMORY
    if watched.use.tasks > limits.processes + TASK_MARGIN:
        return KillReason.PROCESSES
    if _log_bytes(watched.watch.log) > limits.log_bytes:
        return KillReason.LOG
    lost = watched.free_at_start - _free_bytes(watched.watch.scratch)
    if lost > limits.scratch_bytes and _deleted_bytes(table, watched) + watched.disk.bytes > limits.scratch_bytes:
        return KillReason.SCRATCH
    return None


def walk_slice(watched: Watched) -> tuple[bool, KillReason | None]:
    """Advance the walk over the scratch directory. Returns whether a pass was completed, and the limit it exceeds."""
    limits = watched.watch.limits
    watched.walk = watched.walk or Walk(watched.watch.scratch)
    complete = watched.walk.advance(SLICE_ENTRIES)
    so_far = complete or watched.walk.so_far
    if complete is not None:
        watched.walk, watched.disk = None, complete
    exceeded = so_far.bytes > limits.scratch_bytes or so_far.inodes > limits.scratch_inodes
    if exceeded:
        watched.disk = so_far
    return complete is not None, KillReason.SCRATCH if exceeded else None


def census(table: ProcessTable, watched: Watched) -> SlotCensus:
    """State of the slot now; the disk as of the last pass."""
    watched.use = table.use(watched.watch.target)
    return SlotCensus(
        slot=watched.watch.slot,
        processes=watched.use.processes,
        tasks=watched.use.tasks,
        zombies=watched.use.zombies,
        memory_bytes=watched.memory_bytes,
        scratch_bytes=watched.disk.bytes,
        scratch_inodes=watched.disk.inodes,
        log_bytes=_log_bytes(watched.watch.log),
        killed=watched.killed,
    )


def _deleted_bytes(table: ProcessTable, watched: Watched) -> int:
    """Space of deleted files that are still open. Under the candidate's uid: root in a container may not look."""
    watch = watched.watch
    pids = table.pids(watch.target)
    device = os.stat(watch.scratch).st_dev
    if watch.uid is None:
        return deleted_bytes(pids, device)
    with assumed(watch.uid, watch.spare_uid):
        return deleted_bytes(pids, device)


def _free_bytes(path: str) -> int:
    """Free bytes of the file system, for everybody."""
    found = os.statvfs(path)
    return found.f_bfree * found.f_frsize


def _log_bytes(path: str) -> int:
    """Size of the log; what cannot be found is empty."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
