"""How much a candidate has written, without following anything it made. Trusted code, part of the warden.

A walk is done in slices, so that a tree of many files cannot keep the warden from stopping somebody.
A candidate that swaps a directory for a link during the walk can only make itself look larger.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

BLOCK_BYTES = 512
"""Unit of `st_blocks`, whatever the file system."""


HIDDEN_BYTES = 1 << 60
"""What a directory counts that nobody can look into."""

_HIDING = frozenset({errno.ENAMETOOLONG, errno.EACCES, errno.EPERM})


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Space and files below a directory."""

    bytes: int
    inodes: int


class Walk:
    """One pass over a directory tree, to be advanced in slices.

    A directory that cannot be entered, because its path is too long or it was closed to us, counts as more than any
    limit: no compiler makes one, and it would hide whatever lies below.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._bytes = self._inodes = 0
        self._steps = self._visit()

    def advance(self, entries: int) -> DiskUse | None:
        """Look at so many more entries. Returns the use once the pass is complete, else None."""
        for _ in range(entries):
            if next(self._steps, None) is None:
                return self.so_far
        return None

    @property
    def so_far(self) -> DiskUse:
        """What was found up to here: a lower bound while the pass is under way."""
        return DiskUse(self._bytes, self._inodes)

    def _visit(self) -> Iterator[int]:
        """One step per entry."""
        pending = [self._root]
        while pending:
            path = pending.pop()
            try:
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError as error:
                if error.errno in _HIDING:
                    self._bytes += HIDDEN_BYTES
                continue
            # A descriptor instead of the path, so that no link is followed. The names come out without the directory.
            with _closing(fd), os.scandir(fd) as entries:
                for entry in entries:
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    self._inodes += 1
                    self._bytes += found.st_blocks * BLOCK_BYTES
                    if stat.S_ISDIR(found.st_mode):
                        pending.append(f"{path}/{entry.name}")
                    yield 1


@contextlib.contextmanager
def _closing(fd: int) -> Iterator[None]:
    """Close the descriptor at the end."""
    try:
        yield
    finally:
        os.close(fd)


def deleted_bytes(pids: list[int], device: int) -> int:
    """Space of files that the processes hold open although no name is left, on one file system.

    Needs the right to inspect the processes: their uid. What cannot be inspected counts as nothing.
    """
    seen: dict[int, int] = {}
    for pid in pids:
        directory = f"/proc/{pid}/fd"
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        for name in names:
            try:
                found = os.stat(f"{directory}/{name}")
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and not found.st_nlink and found.st_dev == device:
                seen[found.st_ino] = found.st_blocks * BLOCK_BYTES
    return sum(seen.values())
