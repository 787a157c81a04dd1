"""Which tasks exist: the built-in suite and, if named, those of a source in KernelBench's format. Trusted side.

Files are read and parsed, never imported: no torch here, and nothing of a task file runs in this process. `sources.py`
says what a source is and what its tasks are called. Splits follow `splits.py`.
"""

import difflib
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from kernel_env.terms import Language, Split

from ..errors import InvalidRequest
from .listing import Entry, Listing, SkippedTask, sort_key
from .pinned import PINNED_REVISION, Difference, difference, kernelbench
from .reader import decode, parse_task
from .sources import read_source
from .splits import split_of
from .task import Task

_BUILTIN_FOLDER = Path(__file__).parent / "builtin"
_SUGGESTIONS = 3

_PROVEN = frozenset(
    {
        *("conv2d", "gelu", "hard_sigmoid", "hard_tanh", "layer_norm", "leaky_relu", "linear_gelu", "log_softmax"),
        *("matmul", "relu", "rms_norm", "sigmoid", "softmax", "sum_reduce", "swish", "tanh"),
    }
)
"""Built-in tasks that were judged on a GPU. The others were on the CPU only, so a seed never selects them: they are
`reserved`, and given to whoever asks for their id or that split."""

logger = logging.getLogger(__name__)

_E = TypeVar("_E", Split, Language)


class TaskSet:
    """Tasks in a fixed order: built-in ones by name, then those of the source by level, number and name."""

    def __init__(
        self,
        tasks: Iterable[Task],
        *,
        skipped: Iterable[SkippedTask] = (),
        revision: str | None = None,
        differences: Difference | None = None,
    ) -> None:
        self._tasks = tuple(tasks)
        self._by_id = {task.task_id: task for task in self._tasks}
        self.skipped = tuple(skipped)
        self.revision = revision
        """Commit of the source if it is a git checkout or an archive of one, else None."""

        self.differences = differences
        """How a KernelBench checkout differs from the pinned files; None where there is nothing to compare."""

    @property
    def is_pinned(self) -> bool:
        """Whether the source says to be KernelBench at `PINNED_REVISION`."""
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


def load_tasks(source: str | None = None) -> TaskSet:
    """Built-in tasks, and those of `source` if one is named.

    Args:
        source: A path, see `sources.py`.
    Raises:
        InvalidRequest: The source holds no task, a file is malformed, or an id exists twice.
    """
    tasks = [_task(entry, "builtin") for entry in _builtin_entries()]
    if source is None:
        return TaskSet(tasks)
    listing = read_source(source)
    taken = {task.task_id for task in tasks}
    for entry in listing.entries:
        if entry.task_id in taken:
            raise InvalidRequest(
                f"{entry.file_name}: the id {entry.task_id!r} belongs to a built-in task; rename the file"
            )
    found = [_task(entry, listing.origin) for entry in listing.entries]
    differences = _differences(listing)
    if differences:
        logger.warning("tasks_differ_from_pinned revision=%s %s", PINNED_REVISION[:12], differences)
    return TaskSet([*tasks, *found], skipped=listing.skipped, revision=listing.revision, differences=differences)


def load_one(source: str) -> Task:
    """The task of a source that holds just one.

    Raises:
        InvalidRequest: As `load_tasks`, or it holds several.
    """
    tasks = [task for task in load_tasks(source) if not is_builtin(task.task_id)]
    if len(tasks) != 1:
        raise InvalidRequest(f"task source {Path(source).name!r} holds {len(tasks)} tasks; a file with one is needed")
    return tasks[0]


def is_builtin(task_id: str) -> bool:
    """Whether a built-in task has that id."""
    return any(entry.task_id == task_id for entry in _builtin_entries())


def _builtin_entries() -> list[Entry]:
    entries = [
        Entry(path.stem, path.name, path.read_bytes(), None)  # the header says the level, 1 unless it does
        for path in _BUILTIN_FOLDER.glob("*.py")
        if path.name[0] not in "_."
    ]
    return sorted(entries, key=lambda entry: sort_key(entry)[1:])


def _task(entry: Entry, origin: str) -> Task:
    read = parse_task(decode(entry.data, entry.file_name), entry.file_name)
    if entry.level is not None and read.level not in {None, entry.level}:
        raise InvalidRequest(
            f"{entry.file_name}: the header says level {read.level}, where the file lies says level {entry.level}"
        )
    return Task(
        task_id=entry.task_id,
        level=entry.level or read.level or 1,
        split=split_of(entry.task_id) if origin != "builtin" or entry.task_id in _PROVEN else Split.RESERVED,
        precision=read.precision,
        source=read.source,
        cpu_source=read.cpu_source,
        origin=origin,
        more_sources=read.more_sources,
        more_cpu_sources=read.more_cpu_sources,
        varying=read.varying,
    )


def _differences(listing: Listing) -> Difference | None:
    """Against the pinned files; None for anything that shares no file name with KernelBench."""
    pin = kernelbench()
    if not any(path in pin.hashes for path in listing.checkout):
        return None
    found = difference(listing.checkout, pin)
    return found if listing.is_whole else Difference(found.changed, found.added)


def _member(kind: type[_E], value: str, word: str) -> _E:
    try:
        return kind(value)
    except ValueError as error:
        allowed = ", ".join(member.value for member in kind)
        raise InvalidRequest(f"unknown {word} {_shown(value)}; one of {allowed}") from error


def _shown(value: str) -> str:
    return repr(value if len(value) <= 80 else value[:77] + "...")
