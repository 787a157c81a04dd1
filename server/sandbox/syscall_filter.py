"""Which system calls a candidate may make. Trusted code, run in the candidate before any submitted code.

Everything is allowed except what is listed: compilers, CUDA and user programs use too much to enumerate. A denied call
fails with EPERM and the program goes on.

Covered: sockets (an allow-list of families), tracing and signalling tricks, namespaces, mounts, kernel interfaces with
a history of bugs, scheduling privileges, System V IPC and memory that no sample can see, leaving the session.
Not covered: resource use (`confine`, the warden), signals between processes of one uid when the candidate has no uid of
its own and the kernel cannot scope them, except for plain `kill`.
"""

import errno
import os
import socket
from collections.abc import Iterable

try:
    import pyseccomp

    IMPORT_ERROR: str | None = None
except (ImportError, RuntimeError, OSError) as error:  # the package raises RuntimeError without the shared library
    IMPORT_ERROR = str(error)

# fmt: off
DENIED = (
    # Memory, descriptors and execution of other processes.
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_getfd",
    # Mounts, roots and namespaces.
    "mount", "umount2", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    "pivot_root", "chroot", "unshare", "setns",
    # Kernel interfaces with many past holes, useless to a kernel writer.
    "bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
    "keyctl", "add_key", "request_key", "fanotify_init", "name_to_handle_at", "open_by_handle_at",
    # The machine itself; all need privileges that a candidate has not, so this is a second lock.
    "reboot", "swapon", "swapoff", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
    "acct", "quotactl", "quotactl_fd", "syslog", "settimeofday", "clock_settime", "clock_adjtime", "sethostname",
    # Priority and placement: timing compares a candidate with the reference on equal terms.
    "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "setpriority", "ioprio_set",
    # Channels that outlive the candidate, and memory that belongs to no process's resident set.
    "shmget", "msgget", "semget", "mq_open", "memfd_create", "memfd_secret",
    # The session identifies a candidate's processes where it shares the server's uid. No compiler needs it.
    "setsid",
)
# fmt: on
"""Denied whatever the arguments. `setpgid` stays: ninja puts every compiler in a group of its own."""

# fmt: off
UNIFIED_NUMBERS = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447, "process_mrelease": 448,
}
# fmt: on
"""Numbers that are the same on every architecture; an old libseccomp does not know these names."""

CLONE_DENIED = (
    *(0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000),  # new mount, cgroup, UTS, IPC namespace
    *(0x1000_0000, 0x2000_0000, 0x4000_0000),  # new user, PID, network namespace
    0x0000_8000,  # CLONE_PARENT: the child would become the zygote's
)
PRCTL_DENIED = (1, 4, 0x5961_6D61)  # PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_PTRACER
SIGNALLING = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
INT_MASK = 0xFFFF_FFFF
"""The kernel reads an `int` argument from the low half of a register; a comparison must ignore the high half."""

SPECULATION_ATTRIBUTE, SPECULATION_API = 7, 4
OPTIMIZE_ATTRIBUTE, BINARY_TREE = 8, 2


def is_available() -> bool:
    """Whether libseccomp and its binding are installed. Loading a filter can still be refused by the host."""
    return IMPORT_ERROR is None


def load(*, socket_families: Iterable[int] = (), deny_truncate: bool = False, own_pid_only: bool = False) -> None:
    """Install the filter in this thread and all that it will start. Irrevocable; sets `no_new_privs` as well.

    Args:
        socket_families: What `socket` may open: `socket.AF_UNIX` or nothing in practice. `socketpair` always works.
        deny_truncate: The kernel's Landlock does not know truncation.
        own_pid_only: Signals may go only to this process: nothing else keeps them from the server.
    """
    filter_ = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    deny = pyseccomp.ERRNO(errno.EPERM)
    for name in (*DENIED, *(("truncate",) if deny_truncate else ())):
        filter_.add_rule(deny, UNIFIED_NUMBERS.get(name, name))
    # glibc falls back to `clone`, whose flags a filter can read; those of clone3 lie behind a pointer.
    filter_.add_rule(pyseccomp.ERRNO(errno.ENOSYS), UNIFIED_NUMBERS["clone3"])
    for flag in CLONE_DENIED:
        filter_.add_rule(deny, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    for option in PRCTL_DENIED:
        filter_.add_rule(deny, "prctl", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, INT_MASK, option))
    # Limits of another process; programs ask for their own with pid 0.
    filter_.add_rule(deny, "prlimit64", pyseccomp.Arg(0, pyseccomp.NE, 0))
    _deny_sockets(filter_, frozenset(socket_families))
    if own_pid_only:
        filter_.add_rule(deny, UNIFIED_NUMBERS["pidfd_send_signal"])
        for name in SIGNALLING:
            filter_.add_rule(deny, name, pyseccomp.Arg(0, pyseccomp.NE, os.getpid()))
    _tune(filter_)
    filter_.load()


def _deny_sockets(filter_: "pyseccomp.SyscallFilter", allowed: frozenset[int]) -> None:
    """Deny every family that is not allowed, known to this Python or not."""
    deny = pyseccomp.ERRNO(errno.EPERM)
    highest = max(allowed, default=-1)
    for family in range(highest):
        if family not in allowed:
            filter_.add_rule(deny, "socket", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, INT_MASK, family))
    # A set high half makes the number larger than any allowed one: denied here.
    filter_.add_rule(
        deny, "socket", pyseccomp.Arg(0, pyseccomp.GT, highest) if allowed else pyseccomp.Arg(0, pyseccomp.GE, 0)
    )
    filter_.add_rule(deny, "socketpair", pyseccomp.Arg(0, pyseccomp.NE, int(socket.AF_UNIX)))


def _tune(filter_: "pyseccomp.SyscallFilter") -> None:
    """Keep the filter from slowing the candidate's own code, where libseccomp knows how.

    Kernels before 5.16 turn a speculation mitigation on for filtered processes, which would make a candidate slower
    than the unfiltered reference.
    """
    if pyseccomp.get_api() >= SPECULATION_API:
        filter_.set_attr(SPECULATION_ATTRIBUTE, 1)
        filter_.set_attr(OPTIMIZE_ATTRIBUTE, BINARY_TREE)
