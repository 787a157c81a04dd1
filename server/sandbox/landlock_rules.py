"""Which files a candidate may touch, as Landlock rules. Trusted code, run in the candidate before any submitted code.

Covered (by version of the kernel's interface, negotiated):
    1: reads and execution below the readable roots only; writes below the scratch directory only; no new device nodes;
       no trace of a process outside (environment, memory, descriptors under /proc).
    2: files may move between directories of the scratch directory (before, every such move fails).
    3: truncation (before, `syscall_filter` denies `truncate`). 4: TCP. 5: device ioctl.
    6: signals and abstract Unix sockets outside. 9: pathname Unix sockets. 10: UDP.
Not covered: file metadata (`stat`, `chmod` of files the uid owns), sockets before version 4 (`syscall_filter` denies
`socket`), `/proc` entries that every user may read.
"""

import os
from collections.abc import Iterable

from .roots import PLAIN_DEVICES

try:
    import landlockpy

    IMPORT_ERROR: str | None = None
except ImportError as error:  # a host without the package still works, in weak mode
    IMPORT_ERROR = str(error)

TASK_DIRECTORY = "/proc/self/task"
"""CUDA names its threads through `comm` files below; without that, its initialisation fails with error 304."""


def abi_version() -> int:
    """Version of Landlock that this kernel offers; 0 without Landlock."""
    if IMPORT_ERROR is not None:
        return 0
    try:
        return int(landlockpy.abi_version())
    except OSError:  # a container's seccomp profile may answer EPERM
        return 0


# The first call looks for libc by running ldconfig, which takes 10 ms: once in the zygote, not once per candidate.
abi_version()


class FileRules:
    """Rules under construction. Build them before the uid is dropped, when every root can still be opened.

    Args:
        scratch: Directory in which everything but device nodes and sockets may be made.
        readable: Files or directories to read and execute below; absent ones are skipped.
        writable: Further files or directories whose content may be changed.
        devices: Device nodes to open, and to send ioctl to.
    """

    def __init__(self, scratch: str, readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> None:
        fs = landlockpy.AccessFS
        read = fs.READ_FILE | fs.READ_DIR | fs.EXECUTE
        change = fs.WRITE_FILE | fs.TRUNCATE
        make = fs.REMOVE_DIR | fs.REMOVE_FILE | fs.MAKE_DIR | fs.MAKE_REG | fs.MAKE_SYM | fs.MAKE_FIFO | fs.REFER
        self._rules = landlockpy.Ruleset(scoped=landlockpy.Scope.SIGNAL | landlockpy.Scope.ABSTRACT_UNIX_SOCKET)
        self._allow(scratch, read | change | make)
        for path in readable:
            self._allow(path, read)
        for path in writable:
            self._allow(path, read | change)
        for path in PLAIN_DEVICES:
            self._allow(path, fs.READ_FILE | fs.WRITE_FILE)
        for path in devices:
            self._allow(path, fs.READ_FILE | fs.WRITE_FILE | fs.IOCTL_DEV)
        self._allow(TASK_DIRECTORY, read | change)  # the driver opens `comm` with O_TRUNC: without it, error 304
        # A rule belongs to an inode, and the kernel makes a new one once nobody holds the directory: hold it.
        self._pinned = os.open(TASK_DIRECTORY, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def enforce(self) -> None:
        """Restrict this thread and all that it will start. Irrevocable; sets `no_new_privs` as well."""
        self._rules.restrict()
        self._rules.close()

    def _allow(self, path: str, access: "landlockpy.AccessFS") -> None:
        fs = landlockpy.AccessFS
        if not os.path.isdir(path):
            # The kernel refuses a rule that gives a file the rights of a directory.
            access &= fs.READ_FILE | fs.WRITE_FILE | fs.EXECUTE | fs.TRUNCATE | fs.IOCTL_DEV
        try:
            self._rules.allow_path(path, access)
        except FileNotFoundError:
            return
