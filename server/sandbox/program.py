"""How trusted programs of this package are started, and the few irrevocable calls that more than one of them makes."""

import ctypes
import os
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)


def command(module: str, *arguments: str) -> list[str]:
    """Command line that runs a module of this package with this interpreter."""
    # -P: the working directory is not searched for modules.
    return [sys.executable, "-P", "-m", f"{__package__}.{module}", *arguments]


def environment() -> dict[str, str]:
    """The least environment in which `command` finds this package, from a checkout as well as installed."""
    package = Path(__file__).resolve().parent
    root = package.parents[len(__package__.split(".")) - 1]
    path = dict.fromkeys([str(root), *(str(Path(entry).resolve()) for entry in sys.path if entry)])
    return {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": os.pathsep.join(path), "LANG": "C.UTF-8"}


def prctl(option: int, value: int) -> None:
    """The system call of that name, with one argument.

    Raises:
        OSError: The kernel refused.
    """
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def set_no_new_privs() -> None:
    """No program started from here on gains privileges by its set-uid bit or file capabilities."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def become(uid: int, gid: int) -> None:
    """Change to an unprivileged uid and gid for good.

    Raises:
        OSError: The kernel refused.
        PermissionError: The ids are root's, or the way back is still open.
    """
    if uid <= 0 or gid <= 0:
        raise PermissionError("a candidate never runs as root")
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (gid, gid, gid) or os.getgroups():
        raise PermissionError("the kernel did not change the ids")
    try:
        os.setresuid(0, 0, 0)
    except PermissionError:
        return
    raise PermissionError("the old uid can be taken back")
