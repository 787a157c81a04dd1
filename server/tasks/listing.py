"""Which files of a source are tasks, and their ids. Trusted side; knows paths and bytes, not where they come from.

A checkout is recognised by `level*/` folders that hold Python files: at the top, in `KernelBench/`, or below the single
top folder that archives have. Its ids are such as `level1/19_ReLU`. Anything else is a plain folder, whose ids are the
stems of its files.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from .header import MODEL_LEVEL, MODEL_LEVEL_REASON

INNER_FOLDER = "KernelBench"
MAX_TASK_BYTES = 1 << 20
"""Largest task file; KernelBench's largest has 12 kB."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Files of a source in memory."""

    name: str
    """Of the folder, file or archive; never a path."""

    files: Mapping[str, bytes]
    """By path relative to the source, with slashes."""

    revision: str | None = None
    is_whole: bool = True
    """False for a file picked out of a folder: that others are not there means nothing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One task file."""

    task_id: str
    file_name: str
    data: bytes
    level: int | None
    """As the folder or data set says; None: the file's own header says it, or it is 1."""


@dataclass(frozen=True, slots=True)
class SkippedTask:
    """A file of the source that is no task here, and why."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source holds, in the order of level, number and name."""

    name: str
    entries: tuple[Entry, ...]
    skipped: tuple[SkippedTask, ...] = ()
    revision: str | None = None
    checkout: Mapping[str, bytes] = field(default_factory=dict)
    """Files by their path in KernelBench's layout, `level1/19_ReLU.py`; empty for anything but a checkout."""

    is_whole: bool = True

    @property
    def origin(self) -> str:
        """Name with the revision, if known."""
        return self.name if self.revision is None else f"{self.name}@{self.revision[:12]}"


def listing_of(tree: Tree) -> Listing:
    """Tasks among the files of `tree`."""
    checkout = _checkout(tree.files)
    if not checkout:
        plain = _plain(tree.files)
        entries = [Entry(stem_of(path), path, data, None) for path, data in plain.items() if is_task_file(path)]
        return Listing(tree.name, tuple(sorted(entries, key=sort_key)), revision=tree.revision)
    entries, skipped = [], []
    for path, data in checkout.items():
        folder, _, file_name = path.partition("/")
        if is_task_file(file_name):
            entries.append(Entry(f"{folder}/{stem_of(file_name)}", file_name, data, level_of(folder)))
    entries.sort(key=sort_key)
    skipped = [SkippedTask(entry.task_id, MODEL_LEVEL_REASON) for entry in entries if entry.level == MODEL_LEVEL]
    return Listing(
        tree.name,
        tuple(entry for entry in entries if entry.level != MODEL_LEVEL),
        tuple(skipped),
        tree.revision,
        checkout,
        tree.is_whole,
    )


def sort_key(entry: Entry) -> tuple[int, int, str]:
    """Level, number, name."""
    stem = stem_of(entry.file_name)
    match = re.match(r"(\d{1,9})_", stem)
    return (entry.level or 0, int(match[1]) if match else 0, stem)


def level_of(folder: str) -> int | None:
    """Level a folder's name states: 2 for `level2`, None for anything else."""
    match = re.fullmatch(r"level(\d{1,3})", folder)
    return int(match[1]) if match else None


def is_task_file(name: str) -> bool:
    """Whether a file of that name is a task. Names that start with `_` or `.` are not."""
    return name.endswith(".py") and name[0] not in "_."


def stem_of(file_name: str) -> str:
    """`19_ReLU` for `19_ReLU.py`."""
    return PurePosixPath(file_name).stem


def _checkout(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files below the `level*` folders, by path from there; empty where there are none."""
    for prefix in _prefixes(files):
        inner = {path.removeprefix(prefix): data for path, data in files.items() if path.startswith(prefix)}
        found = {path: data for path, data in inner.items() if path.count("/") == 1 and level_of(path.split("/")[0])}
        if found:
            return found
    return {}


def _plain(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files of the top folder, or of the only folder there."""
    top = _only_folder(files)
    prefix = f"{top}/" if top else ""
    inner = {path.removeprefix(prefix): data for path, data in files.items()}
    return {path: data for path, data in inner.items() if "/" not in path}


def _prefixes(files: Mapping[str, bytes]) -> list[str]:
    top = _only_folder(files)
    below = [f"{top}/", f"{top}/{INNER_FOLDER}/"] if top else []
    return ["", f"{INNER_FOLDER}/", *below]


def _only_folder(files: Mapping[str, bytes]) -> str | None:
    """Folder that holds every file, if there is one."""
    tops = {path.partition("/")[0] if "/" in path else "" for path in files}
    return next(iter(tops)) if len(tops) == 1 and "" not in tops else None
