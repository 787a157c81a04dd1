"""Fetches KernelBench at the pinned revision with git, over the network of whoever asks, and checks every file.

Trusted side. Nothing of a checkout is run: no hooks, no filters, no submodules. The folder asked for appears only when
everything in it was found right.
"""

import os
import shlex
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from ..errors import InvalidRequest, KernelEnvError
from .children import run_to_end
from .folder import read_folder
from .listing import listing_of
from .pinned import Pin, difference
from .revision import revision_of

SOURCE = "https://github.com/ScalingIntelligence/KernelBench"
TIMEOUT_S = 600.0
"""For 2 MB, so that a stalled connection ends."""

_SHOWN = 3
_MAX_ERROR_CHARS = 300
_OPTIONS = {
    "core.autocrlf": "false",  # the hashes are of the files as committed
    "core.symlinks": "false",  # a link becomes a text file: nothing can point out of the folder
    "core.hooksPath": "/dev/null",
    "advice.detachedHead": "false",
}


class FetchFailed(KernelEnvError):
    """KernelBench could not be fetched, or is not what it should be; the text says what to do instead."""


def fetch(folder: Path, pin: Pin, source: str = SOURCE, *, timeout_s: float = TIMEOUT_S) -> bool:
    """Make `folder` a checkout of `pin`, and return whether anything had to be fetched.

    Args:
        source: Address or path that git can fetch from.
        timeout_s: For all of it.
    Raises:
        InvalidRequest: `folder` exists and is neither empty nor such a checkout.
        FetchFailed: No git, no network, no such revision there, or the files differ from the pinned ones.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidRequest(f"{folder.name!r} exists and is no folder")
    if folder.is_dir() and any(folder.iterdir()):
        problem = problem_of(folder, pin)
        if problem is None:
            return False
        raise InvalidRequest(f"{folder.name!r} is not empty, and not the checkout asked for: {problem}")
    deadline = time.monotonic() + timeout_s
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".kernelbench-") as temporary:
            made = Path(temporary) / "checkout"
            _clone(made, pin, source, deadline)
            problem = problem_of(made, pin)
            if problem is not None:
                raise FetchFailed(f"what came from {source} is not as pinned: {problem}")
            made.rename(folder)
    except OSError as error:
        raise InvalidRequest(f"{folder.name!r} cannot be made: {error.strerror}") from error
    return True


def problem_of(folder: Path, pin: Pin) -> str | None:
    """What makes `folder` another thing than a checkout of `pin`, in words; None if nothing does.

    Raises:
        InvalidRequest: A file cannot be read.
    """
    revision = revision_of(folder)
    if revision != pin.revision:
        return f"revision {revision or 'unknown'}, expected {pin.revision}"
    checkout = listing_of(read_folder(folder)).checkout
    # A level that is missing as a whole is no difference where tasks are loaded; here it is.
    missing = tuple(path for path in pin.hashes if path not in checkout)
    found = replace(difference(checkout, pin), missing=missing)
    if found:
        named = [*found.changed, *found.added, *found.missing][:_SHOWN]
        return f"files differ, {found}, for instance {', '.join(named)}"
    return None


def instructions(folder: Path, pin: Pin) -> str:
    """Commands that do the same by hand."""
    place = shlex.quote(str(folder))
    return "\n".join(
        (
            "On a machine with a network, then copied here:",
            f"    git clone {SOURCE} {place}",
            f"    git -C {place} checkout {pin.revision}",
            f"    {export_line(folder)}",
        )
    )


def export_line(folder: Path) -> str:
    """Shell command that has the server offer the tasks of `folder`."""
    return f"export KERNEL_ENV_TASKS={shlex.quote(str(folder.resolve()))}"


def _clone(folder: Path, pin: Pin, source: str, deadline: float) -> None:
    """One commit, no history.

    Raises:
        FetchFailed: With the last line git wrote.
    """
    where = source if "://" in source or not Path(source).exists() else str(Path(source).resolve())
    _git(["init", "--quiet", str(folder.resolve())], deadline)
    inside = ["-C", str(folder.resolve())]
    _git([*inside, "fetch", "--quiet", "--depth=1", "--no-tags", "--", where, pin.revision], deadline)
    _git([*inside, "checkout", "--quiet", "--detach", pin.revision], deadline)


def _git(arguments: list[str], deadline: float) -> None:
    options = [part for name, value in _OPTIONS.items() for part in ("-c", f"{name}={value}")]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
    # Set by a hook of another repository, they would point git there.
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        environment.pop(name, None)
    command = ["git", *options, *arguments]
    try:
        ended = run_to_end(command, environment, timeout_s=deadline - time.monotonic())
    except OSError as error:
        raise FetchFailed(f"git cannot be started: {error.strerror}") from error
    if ended is None:
        raise FetchFailed("git did not end in time")
    if ended.status != 0:
        lines = ended.complaints.decode("utf-8", "replace").strip().splitlines() or ["it gave no reason"]
        raise FetchFailed(f"git: {lines[0][:_MAX_ERROR_CHARS]}")
