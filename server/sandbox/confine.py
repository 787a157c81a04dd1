"""Turns a freshly forked child into a candidate, for good. The last trusted code that runs there.

Covered: descriptors, environment, uid, privileges, files, system calls, rlimits. Each step is checked; a step that the
host is known to give (`Isolation`) and that fails ends the child, so that nothing runs half confined.
Not covered: what the parent left in memory (never fork from a process that knows a secret), the total use of memory,
scratch and log (the warden), device memory and host memory that the CUDA driver pins.
"""

import contextlib
import os
import resource
import tempfile
from dataclasses import dataclass, field

from ..errors import EvaluatorError
from . import landlock_rules, program, syscall_filter
from .isolation import Isolation
from .limits import Limits

FIRST_IN_KILLING_ORDER = 1000
"""oom_score_adj: when the host runs out of memory, the kernel ends a candidate before anything of ours."""

SIGKILL = 9
FIRST_TRUNCATE_ABI = 3
FIRST_SIGNAL_ABI = 6


@dataclass(frozen=True, slots=True)
class Confinement:
    """Everything that `confine` needs to know."""

    scratch: str
    """Existing directory that belongs to the candidate; becomes the working directory."""

    log_fd: int
    """Becomes standard output and error. Open it for appending, outside of the scratch directory."""

    isolation: Isolation
    environment: dict[str, str]
    """The whole of it, from `environ.environment`."""

    readable: tuple[str, ...]
    """From `roots.default_readable`, plus what the task needs."""

    uid: int | None = None
    """None only in weak mode."""

    gid: int | None = None
    parent_pid: int | None = None
    """Process that forked this one; a child that was orphaned before it could be confined does not go on."""

    keep_fds: tuple[int, ...] = ()
    writable: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    socket_families: tuple[int, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse what would not confine.

        Raises:
            ValueError: Root, half of a uid and gid, or no uid although the host can give one.
        """
        if (self.uid is None) != (self.gid is None):
            raise ValueError("uid and gid go together")
        if self.uid is not None and (self.uid <= 0 or (self.gid or 0) <= 0):
            raise ValueError("a candidate never runs as root")
        if self.uid is None and self.isolation.uid:
            raise ValueError("the host can give a candidate its own uid, so it must have one")
        if not os.path.isabs(self.scratch):
            raise ValueError("the scratch directory must be an absolute path")


def confine(confinement: Confinement) -> None:
    """Confine this process. Call it right after the fork, before anything that a submission could influence.

    Python objects of the parent that own a descriptor (sockets, files) must be detached: their numbers are closed here
    and used again.

    Raises:
        EvaluatorError: Several threads, privileges left, or a protection failed that the host gives. End the child.
    """
    try:
        _confine(confinement)
    except OSError as error:
        raise EvaluatorError(f"a candidate could not be confined: {error.strerror}") from error


def _confine(c: Confinement) -> None:
    """The steps in the only order that works: what needs privileges first, the filter last."""
    if len(os.listdir("/proc/self/task")) != 1:
        # Credentials, Landlock and filters belong to a thread.
        raise EvaluatorError("a candidate must be confined while it has a single thread")
    parent = os.getppid()
    if c.parent_pid not in {None, parent}:
        raise EvaluatorError("the parent ended before its candidate could be confined")
    if os.getsid(0) != os.getpid():
        os.setsid()
    _arrange_descriptors(c)
    os.umask(0o077)
    os.environ.clear()
    os.environ.update(c.environment)
    tempfile.tempdir = None  # may hold the parent's answer
    _set_rlimits(c)
    rules = None
    if c.isolation.landlock_abi:
        rules = landlock_rules.FileRules(c.scratch, c.readable, c.writable, c.devices)
    if c.uid is not None and c.gid is not None:
        program.become(c.uid, c.gid)
    _require_unprivileged()
    os.chdir(c.scratch)
    os.makedirs(c.environment.get("TMPDIR", c.scratch), mode=0o700, exist_ok=True)
    # A change of uid clears the first and sets the second to "no". A candidate that its own uid can inspect lets the
    # warden look for files that were deleted while open; other candidates have other uids.
    program.prctl(program.PR_SET_PDEATHSIG, SIGKILL)
    program.prctl(program.PR_SET_DUMPABLE, 1)
    if os.getppid() != parent:
        raise EvaluatorError("the parent ended while its candidate was being confined")
    if c.isolation.no_new_privs:
        program.set_no_new_privs()
    if rules is not None:
        rules.enforce()
    if c.isolation.seccomp:
        syscall_filter.load(
            socket_families=c.socket_families,
            deny_truncate=c.isolation.landlock_abi < FIRST_TRUNCATE_ABI,
            own_pid_only=c.uid is None and c.isolation.landlock_abi < FIRST_SIGNAL_ABI,
        )


def _arrange_descriptors(c: Confinement) -> None:
    """Input from nowhere, output to the log, and no other descriptor but the named ones."""
    kept = sorted({*c.keep_fds})
    if kept and kept[0] <= 2:
        raise EvaluatorError("descriptors 0 to 2 are input and output, and cannot be kept for something else")
    null = os.open("/dev/null", os.O_RDONLY)
    log = os.dup(c.log_fd)  # may itself be 0, 1 or 2
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    low = 3
    for fd in kept:
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, max(int(name) for name in os.listdir("/proc/self/fd")) + 1)


def _set_rlimits(c: Confinement) -> None:
    """Hard limits, which nobody without privileges can raise."""
    limits = c.limits
    wanted = {
        resource.RLIMIT_CORE: 1,  # not 0: with that the kernel still pipes a whole dump into the host's crash handler
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    # The kernel counts every task of the uid: on a shared uid those of the server come on top.
    wanted[resource.RLIMIT_NPROC] = limits.processes + (0 if c.uid is not None else _tasks_of(os.getuid()))
    if limits.cpu_seconds is not None:
        wanted[resource.RLIMIT_CPU] = limits.cpu_seconds
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
        file.write(b"%d" % FIRST_IN_KILLING_ORDER)  # refused where /proc is read-only: then only the watchdog is left


def _tasks_of(uid: int) -> int:
    """Number of tasks that the uid has now; a process that ends meanwhile counts or not."""
    count = 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and entry.stat().st_uid == uid:
                count += len(os.listdir(f"/proc/{entry.name}/task"))
    return count


def _require_unprivileged() -> None:
    """No root and no capability is left.

    Raises:
        EvaluatorError: One is.
    """
    with open("/proc/self/status", "rb") as file:
        fields = dict(line.split(b":", 1) for line in file if b":" in line)
    held = [name for name in (b"CapPrm", b"CapEff", b"CapAmb") if int(fields[name], 16)]
    if 0 in os.getresuid() or held:
        raise EvaluatorError("a candidate would keep root's privileges")
