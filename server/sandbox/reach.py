"""Makes a Python installation in root's home usable for candidates. Trusted code, run once in the zygote.

A version manager of root's puts Python below /root, which other users may not enter. Opening /root to everybody is not
ours to do; a private mount namespace shows the candidates only the paths they need, at the same place.

Needs CAP_SYS_ADMIN, and only where a path is blocked: in a container Python lies where everybody may read it.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

from .roots import blocking_directory

CLONE_NEWNS = 0x0002_0000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)


def make_reachable(paths: Iterable[str]) -> tuple[str, ...]:
    """Let other users reach the paths, in a mount namespace of this process and its children.

    What else lies below a blocking directory disappears from the view of this process.

    Returns:
        The paths that others still cannot reach: no privilege, or the path itself is closed to others.
    """
    blocked: dict[str, list[str]] = {}
    hopeless = []
    for path in paths:
        block = blocking_directory(path)
        if block is None:
            continue
        if block == str(Path(path).resolve()):
            hopeless.append(path)
        else:
            blocked.setdefault(block, []).append(path)
    if blocked:
        try:
            _replace(blocked)
        except OSError:
            return (*hopeless, *(path for group in blocked.values() for path in group))
    return (*hopeless, *(path for group in blocked.values() for path in group if blocking_directory(path)))


def _replace(blocked: dict[str, list[str]]) -> None:
    """Cover each blocking directory with an empty one that holds only the wanted paths."""
    with contextlib.ExitStack() as stack:
        _check(_libc.unshare(CLONE_NEWNS))
        _mount(None, "/", None, MS_REC | MS_PRIVATE, None)
        # Opened in the new namespace: the kernel binds nothing from another one.
        sources: dict[str, int] = {}
        for path in (path for group in blocked.values() for path in group):
            resolved = str(Path(path).resolve())
            if resolved not in sources:
                sources[resolved] = os.open(resolved, os.O_PATH | os.O_CLOEXEC)
                stack.callback(os.close, sources[resolved])
        for block in blocked:
            _mount("tmpfs", block, "tmpfs", 0, "mode=0755,size=1m")
        for target, source in sorted(sources.items()):
            if os.path.exists(target):  # below a path that is already in place
                continue
            os.makedirs(target if os.path.isdir(f"/proc/self/fd/{source}") else os.path.dirname(target), mode=0o755)
            if not os.path.isdir(target):
                with open(target, "xb"):
                    pass
            _mount(f"/proc/self/fd/{source}", target, None, MS_BIND, None)
        for block in blocked:
            _mount(None, block, None, MS_REMOUNT | MS_BIND | MS_RDONLY, None)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None) -> None:
    """`mount(2)`."""
    arguments = (None if text is None else os.fsencode(text) for text in (source, target, kind))
    data = None if options is None else options.encode()
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), data))


def _check(result: int) -> None:
    """Raise OSError for a failed call."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
