"""Makes and removes the directories that candidates write to. Trusted code; the content is hostile.

Covered: links (never followed), any depth (constant stack and descriptors), closed directories, any number of files (a
deadline). Remove a tree only once no process of its candidate is left: nothing may move while it is taken apart.
"""

import contextlib
import os
import secrets
import stat
import time
from pathlib import Path

from ..errors import EvaluatorError
from .roots import blocking_directory

SEARCHABLE = 0o711
"""Others may pass through to their own directory, but not see which other ones there are."""


def prepare_root(root: Path, *, for_other_users: bool) -> None:
    """Make the directory that holds all scratch directories.

    Raises:
        EvaluatorError: Candidates could not get to it, or it cannot be made.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(SEARCHABLE)
    except OSError as error:
        raise EvaluatorError("the directory for scratch space cannot be made") from error
    if os.statvfs(root).f_flag & os.ST_NOEXEC:
        # Every compiled submission would fail there, and look like its author's fault.
        raise EvaluatorError(
            f"the directory for scratch space, {root.parent}, is mounted noexec; mount it with exec or set TMPDIR"
        )
    if for_other_users and blocking_directory(str(root)) is not None:
        raise EvaluatorError(
            "the directory for scratch space lies where candidates cannot reach it; choose another place"
        )


def make(root: Path, name: str, uid: int | None, gid: int | None) -> str:
    """Make a scratch directory that only its candidate can use.

    Returns:
        Its path, which cannot be guessed.
    """
    path = root / f"{name}-{secrets.token_hex(8)}"
    path.mkdir(mode=0o700)
    if uid is not None and gid is not None:
        os.chown(path, uid, gid)
    return str(path)


def remove(path: str, *, deadline_s: float) -> bool:
    """Remove a scratch directory. Returns whether nothing is left of it; call again to go on."""
    stop_at = time.monotonic() + deadline_s
    try:
        top = _open_directory(path, None)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        # Below the top every directory is emptied upwards: its directories move up to the top, under names that
        # the candidate could not foresee. So the depth never grows.
        prefix, moved = secrets.token_hex(8), 0
        while True:
            directories = _unlink_files(top, stop_at)
            if not directories:
                break
            for name in directories:
                moved = _flatten(top, name, prefix, moved, stop_at)
                os.rmdir(name, dir_fd=top)
        os.rmdir(path)
    except OSError:
        return False
    finally:
        os.close(top)
    return True


def _flatten(top: int, name: str, prefix: str, moved: int, stop_at: float) -> int:
    """Empty one directory below the top. Returns how many directories were moved so far."""
    fd = _open_directory(name, top)
    try:
        for child in _unlink_files(fd, stop_at):
            moved += 1
            os.close(_open_directory(child, fd))  # a directory that is closed to its owner cannot be moved either
            os.rename(child, f"{prefix}{moved}", src_dir_fd=fd, dst_dir_fd=top)
    finally:
        os.close(fd)
    return moved


def _unlink_files(directory: int, stop_at: float) -> list[str]:
    """Remove all but the directories, whose names are returned.

    Raises:
        TimeoutError: Out of time.
    """
    directories = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if time.monotonic() > stop_at:
                raise TimeoutError
            if entry.is_dir(follow_symlinks=False):
                directories.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=directory)
    return directories


def _open_directory(name: str, parent: int | None) -> int:
    """Open a directory that is not a link, opening it up first where its owner had closed it."""
    # Not readable itself: only a handle, so that the mode can be changed without following a link.
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if stat.S_IMODE(os.fstat(handle).st_mode) & 0o700 != 0o700:
            with contextlib.suppress(PermissionError):
                os.chmod(f"/proc/self/fd/{handle}", 0o700)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    finally:
        os.close(handle)
