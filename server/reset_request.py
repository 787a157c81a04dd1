"""What a client may ask of `reset()`, checked before anything of the running episode is touched. Server side.

Every value comes from the wire and may be anything JSON can hold. What is wrong is refused with what to send instead;
nothing is ignored in silence, because a trainer with a misspelt option would train on the wrong tasks for days.
"""

import difflib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeVar

from kernel_env.terms import Language, Split

from .errors import InvalidRequest
from .tasks.registry import TaskSet
from .tasks.task import Task

EnumT = TypeVar("EnumT", bound=StrEnum)

OPTIONS = ("task_id", "split", "level", "language", "max_turns", "row_index", "evaluation")
"""Options of `reset()` besides `seed` and `episode_id`."""

MAX_NAME_CHARS = 255
MAX_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """A well-formed request. Whether the task exists is decided by `choose`."""

    seed: int | None = None
    episode_id: str | None = None
    task_id: str | None = None
    split: Split | None = None
    level: int | None = None
    language: Language | None = None
    max_turns: int | None = None

    @classmethod
    def parse(cls, seed: object, episode_id: object, options: Mapping[str, object]) -> Self:
        """Request out of what came over the wire.

        Args:
            seed: Non-negative; `row_index` stands in for it, as some trainers send only that.
            options: Those of `OPTIONS`; None means not given.
        Raises:
            InvalidRequest: Unknown option, wrong type or range, or options that contradict each other.
        """
        _refuse_unknown(options)
        chosen_seed = _natural("seed", seed)
        row_index = _natural("row_index", options.get("row_index"))
        task_id = _text("task_id", options.get("task_id"))
        split = _member("split", Split, options.get("split"))
        if _flag("evaluation", options.get("evaluation")) and task_id is None:
            if split not in {None, Split.EVAL}:
                raise InvalidRequest(f"evaluation=true selects split 'eval', but split is {split!r}: send one of them")
            split = Split.EVAL
        return cls(
            seed=row_index if chosen_seed is None else chosen_seed,
            episode_id=_text("episode_id", episode_id),
            task_id=task_id,
            split=split,
            level=_natural("level", options.get("level")),
            language=_member("language", Language, options.get("language")),
            max_turns=_natural("max_turns", options.get("max_turns")),
        )

    def choose(self, tasks: TaskSet) -> "Choice":
        """The task of this request, and how many a seed chooses from.

        A seed names the same task in every process: tasks are in a fixed order, and the seed counts through them.

        Raises:
            InvalidRequest: No such task, or it is not of the split or level that was asked for as well.
        """
        if self.task_id is not None:
            task = tasks.get(self.task_id)
            if self.split not in {None, task.split}:
                raise InvalidRequest(f"task {task.task_id!r} is of split {task.split.value!r}, not {self.split!r}")
            if self.level not in {None, task.level}:
                raise InvalidRequest(f"task {task.task_id!r} is of level {task.level}, not {self.level}")
            return Choice(task, len(tasks.select(split=task.split, level=self.level, language=self.language)))
        offered = tasks.select(split=self.split or Split.TRAIN, level=self.level, language=self.language)
        seed = secrets.randbelow(len(offered)) if self.seed is None else self.seed
        return Choice(offered[seed % len(offered)], len(offered))

    def language_of(self, offered: tuple[Language, ...]) -> Language:
        """Language of the episode: the one asked for, else the first of `offered`.

        Raises:
            InvalidRequest: The server's device does not offer it.
        """
        if self.language is None:
            return offered[0]
        return require_offered(self.language, offered)

    def turns_within(self, limit: int) -> int:
        """Turns of the episode.

        Raises:
            InvalidRequest: Not between 1 and `limit`.
        """
        if self.max_turns is None:
            return limit
        if not 1 <= self.max_turns <= limit:
            raise InvalidRequest(f"max_turns is {self.max_turns}; this server allows 1 to {limit}")
        return self.max_turns


@dataclass(frozen=True, slots=True)
class Choice:
    """The task of an episode."""

    task: Task
    dataset_size: int
    """Tasks a seed chooses from with these filters."""


def require_offered(language: object, offered: tuple[Language, ...]) -> Language:
    """`language`, which must be one of `offered`.

    Raises:
        InvalidRequest: It is not; the text lists those that are.
    """
    name = language.strip().lower() if isinstance(language, str) else None
    if name not in offered:
        names = ", ".join(known.value for known in offered)
        raise InvalidRequest(
            f"language {_shown(language)} is not offered on this server's device; send one of: {names}"
        )
    return Language(name)


def _refuse_unknown(options: Mapping[str, object]) -> None:
    for name in options:
        if name not in OPTIONS:
            allowed = ("seed", "episode_id", *OPTIONS)
            close = difflib.get_close_matches(name[:MAX_NAME_CHARS], allowed, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InvalidRequest(f"reset() does not know {_shown(name)}.{hint} Allowed: {', '.join(allowed)}")


def _natural(name: str, value: object) -> int | None:
    # bool is an int in Python; a trainer that sends true for a number has a bug worth hearing about.
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_SEED:
        raise InvalidRequest(f"{name} is {_shown(value)}; send a whole number from 0 to 2**63 - 1")
    return value


def _text(name: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_NAME_CHARS:
        raise InvalidRequest(f"{name} is {_shown(value)}; send text of 1 to {MAX_NAME_CHARS} characters")
    return value


def _flag(name: str, value: object) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidRequest(f"{name} is {_shown(value)}; send true or false")
    return value


def _member(name: str, kind: type[EnumT], value: object) -> EnumT | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip().lower() in list(kind):
        return kind(value.strip().lower())
    raise InvalidRequest(f"{name} is {_shown(value)}; send one of: {', '.join(kind)}")


def _shown(value: object) -> str:
    """`value` for a message: bounded, whatever came over the wire."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
