"""Which tasks exist: the built-in suite and, if named, a folder in KernelBench's format. Trusted side.

Files are read and parsed, never imported: no torch here, and nothing of a task file runs in this process.

Ids are the file stem for built-in tasks and plain folders (`relu`), and `level1/19_ReLU` for a KernelBench checkout. A
checkout is recognised by its `level*` folders, in the folder named or in `KernelBench/` below it. Splits follow
`splits.py`.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kernel_env.terms import Language, Split

from ..errors import InvalidRequest
from .reader import read_task_file
from .revision import revision_of
from .splits import split_of
from .task import Task

PINNED_REVISION = "423217d9fda91e0c2d67e4a43bf62f96f6d104f1"
"""KernelBench revision whose tasks the documentation and the published numbers refer to."""

_BUILTIN_FOLDER = Path(__file__).parent / "builtin"
_BUILTIN_LEVEL_2 = frozenset({"linear_gelu"})
_NETWORK_LEVEL = 4
_NETWORK_REASON = "level 4 downloads pretrained models when it is constructed; a judge has no network"
_SUGGESTIONS = 3

_E = TypeVar("_E", Split, Language)


@dataclass(frozen=True, slots=True)
class SkippedTask:
    """A file of the folder that is no task here, and why."""

    task_id: str
    reason: str


class TaskSet:
    """Tasks in a fixed order: built-in ones by name, then those of the folder by level, number and name."""

    def __init__(
        self, tasks: Iterable[Task], *, skipped: Iterable[SkippedTask] = (), revision: str | None = None
    ) -> None:
        self._tasks = tuple(tasks)
        self._by_id = {task.task_id: task for task in self._tasks}
        self.skipped = tuple(skipped)
        self.revision = revision
        """Commit of the folder if it is a git checkout, else None."""

    @property
    def is_pinned(self) -> bool:
        """Whether the folder is KernelBench at `PINNED_REVISION`."""
        return self.revision == PINNED_REVISION

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def get(self, task_id: str) -> Task:
        """The task of that id.

        Raises:
            InvalidRequest: There is none; names the nearest ids, or why the file was skipped.
        """
        if task_id in self._by_id:
            return self._by_id[task_id]
        for skipped in self.skipped:
            if skipped.task_id == task_id:
                raise InvalidRequest(f"task {task_id!r} is not offered: {skipped.reason}")
        raise InvalidRequest(f"unknown task {_shown(task_id)}; {self._hint(task_id)}")

    def select(
        self, split: Split | str | None = None, level: int | None = None, language: Language | str | None = None
    ) -> tuple[Task, ...]:
        """Tasks that fit every filter given, in the order of the set; never empty.

        Args:
            split: None takes every split, reserved tasks included.
            language: Checked only; every task can be solved in every language a device offers.
        Raises:
            InvalidRequest: An unknown split or language, or no task fits.
        """
        wanted = None if split is None else _member(Split, split, "split")
        if language is not None:
            _member(Language, language, "language")
        chosen = tuple(
            task
            for task in self._tasks
            if (wanted is None or task.split is wanted) and (level is None or task.level == level)
        )
        if not chosen:
            levels = ", ".join(str(known) for known in sorted({task.level for task in self._tasks}))
            filters = f"split {wanted or 'any'}, level {level if level is not None else 'any'}"
            raise InvalidRequest(f"no task has {filters}; levels here: {levels}")
        return chosen

    def _hint(self, task_id: str) -> str:
        known = {name.lower(): name for name in self._by_id}
        close = difflib.get_close_matches(task_id.lower()[:200], known, n=_SUGGESTIONS, cutoff=0.5)
        if not close:
            return f"{len(self)} tasks exist, for instance {', '.join(list(self._by_id)[:_SUGGESTIONS])}"
        return f"did you mean {' or '.join(known[name] for name in close)}?"


def load_tasks(folder: str | None = None) -> TaskSet:
    """Built-in tasks, and those of `folder` if one is named.

    Args:
        folder: A KernelBench checkout, its `KernelBench/` folder, or any folder of task files.
    Raises:
        InvalidRequest: The folder holds no task, a file is malformed, or an id exists twice.
    """
    tasks = [_builtin(path) for path in _task_files(_BUILTIN_FOLDER)]
    if folder is None:
        return TaskSet(tasks)
    root = Path(folder)
    if not root.is_dir():
        raise InvalidRequest(f"task folder {root.name!r} does not exist")
    layout = _levels_root(root)
    revision = revision_of(root) or (revision_of(layout.parent) if layout is not None else None)
    origin = root.resolve().name if revision is None else f"{root.resolve().name}@{revision[:12]}"
    skipped: list[SkippedTask] = []
    if layout is None:
        level = _level(root.resolve().name) or 1
        found = [_external(path, path.stem, level, origin) for path in _task_files(root)]
    else:
        found = []
        for level_folder in sorted(_level_folders(layout), key=lambda path: _level(path.name) or 0):
            level = _level(level_folder.name) or 0
            for path in _task_files(level_folder):
                task_id = f"{level_folder.name}/{path.stem}"
                if level == _NETWORK_LEVEL:
                    skipped.append(SkippedTask(task_id, _NETWORK_REASON))
                else:
                    found.append(_external(path, task_id, level, origin))
    if not found:
        raise InvalidRequest(f"task folder {root.name!r} holds no task file")
    taken = {task.task_id for task in tasks}
    for task in found:
        if task.task_id in taken:
            raise InvalidRequest(
                f"{task.task_id}.py: the id {task.task_id!r} belongs to a built-in task; rename the file"
            )
    return TaskSet([*tasks, *found], skipped=skipped, revision=revision)


def _builtin(path: Path) -> Task:
    level = 2 if path.stem in _BUILTIN_LEVEL_2 else 1
    return _external(path, path.stem, level, "builtin")


def _external(path: Path, task_id: str, level: int, origin: str) -> Task:
    read = read_task_file(path)
    return Task(
        task_id=task_id,
        level=level,
        split=split_of(task_id),
        precision=read.precision,
        source=read.source,
        cpu_source=read.cpu_source,
        origin=origin,
    )


def _task_files(folder: Path) -> list[Path]:
    """Python files of `folder` in order of their number, then name. Names that start with `_` or `.` are not tasks."""
    files = [path for path in folder.glob("*.py") if path.is_file() and path.name[0] not in "_."]
    return sorted(files, key=lambda path: (_number(path.stem), path.stem))


def _levels_root(root: Path) -> Path | None:
    for candidate in (root, root / "KernelBench"):
        if candidate.is_dir() and _level_folders(candidate):
            return candidate
    return None


def _level_folders(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir() and _level(path.name) is not None]


def _level(name: str) -> int | None:
    match = re.fullmatch(r"level(\d{1,3})", name)
    return int(match[1]) if match else None


def _number(stem: str) -> int:
    match = re.match(r"(\d{1,9})_", stem)
    return int(match[1]) if match else 0


def _member(kind: type[_E], value: str, word: str) -> _E:
    try:
        return kind(value)
    except ValueError as error:
        allowed = ", ".join(member.value for member in kind)
        raise InvalidRequest(f"unknown {word} {_shown(value)}; one of {allowed}") from error


def _shown(value: str) -> str:
    return repr(value if len(value) <= 80 else value[:77] + "...")
