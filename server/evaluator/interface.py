"""The evaluator as the environment sees it; a test double implements the same four members."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..tasks.task import Task
from .results import EvalResult, Submission


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device a server evaluates on."""

    gpu_id: str
    """`cuda:0` or `cpu`."""

    kind: str
    """`cuda` or `cpu`."""

    name: str
    """Marketing name, for the prompt."""


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """What a device is doing now."""

    gpu_id: str
    healthy: bool
    """Whether evaluations are sent to it."""

    busy: bool
    """Whether an evaluation holds it."""

    assigned: int
    """Evaluations that are to be judged on it and have not ended."""

    strikes: int
    """Faults of its own in a row."""


@dataclass(frozen=True, slots=True)
class EvaluatorStatus:
    """What an evaluator is doing now, and how well it confines submissions."""

    isolation: str
    """`strong` when every layer of the sandbox is in force, else `weak`."""

    missing: tuple[str, ...] = ()
    """One sentence per layer of the sandbox that is not in force."""

    waiting: int = 0
    """Evaluations that wait for a place or for a device."""

    running: int = 0
    """Evaluations that were asked for and have not ended."""

    fault: str | None = None
    """What keeps it from judging anything until it is started again."""

    devices: tuple[DeviceStatus, ...] = ()


class Evaluation(Protocol):
    """Judge of submissions, shared by every session of a server."""

    @property
    def devices(self) -> tuple[DeviceInfo, ...]:
        """Devices, all of one kind. Never empty."""

    def status(self) -> EvaluatorStatus:
        """Isolation and load. Returns at once; called from the event loop."""

    def evaluate(
        self,
        task: Task,
        submission: Submission,
        *,
        session_id: str = "",
        start_within_s: float | None = None,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> EvalResult:
        """Judge one submission. Blocks; called from many threads at once.

        Args:
            session_id: Whose turn it is, for a fair queue.
            start_within_s: Raise `Busy` unless the evaluation began within so many seconds.
            is_cancelled: Asked while waiting; true means that nobody waits for the result any more.
        Raises:
            Busy: Not begun in time, or cancelled.
            EvaluatorError: Our fault.
        """

    def close(self) -> None:
        """End every child process. Safe to call twice."""
