"""Commit a folder is checked out at, read from the files of git. Trusted side.

The files are read by hand: asking the `git` program would need it installed, and it refuses folders of other users.
"""

import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}")


def revision_of(folder: Path) -> str | None:
    """Commit of the checkout whose top is `folder`; None when it is none or its state cannot be read."""
    try:
        git = _git_folder(folder)
        if git is None:
            return None
        head = (git / "HEAD").read_text(encoding="ascii").strip()
        if not head.startswith("ref: "):
            return head if _COMMIT.fullmatch(head) else None
        return _resolve(git, head.removeprefix("ref: ").strip())
    except (OSError, ValueError):
        return None


def _git_folder(folder: Path) -> Path | None:
    """`.git` of a checkout; where it is a file, as in a work tree, the folder that file names."""
    git = folder / ".git"
    if git.is_file():
        named = git.read_text(encoding="utf-8").strip()
        git = folder / named.removeprefix("gitdir:").strip()
    return git if git.is_dir() else None


def _resolve(git: Path, name: str) -> str | None:
    """Commit of the ref `name`, loose or packed; a work tree keeps its refs in the common folder."""
    common = git
    if (git / "commondir").is_file():
        common = git / (git / "commondir").read_text(encoding="utf-8").strip()
    for place in (git, common):
        if (place / name).is_file():
            commit = (place / name).read_text(encoding="ascii").strip()
            return commit if _COMMIT.fullmatch(commit) else None
    packed = common / "packed-refs"
    if packed.is_file():
        for line in packed.read_text(encoding="utf-8").splitlines():
            commit, _, ref = line.partition(" ")
            if ref == name and _COMMIT.fullmatch(commit):
                return commit
    return None
