"""The corpus: small tasks, and submissions to them whose paths and first comments state what must come out.

Trusted side. Submissions are read as text, never imported. `corpus/README.md` describes the format.
"""

import hashlib
import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path

from kernel_env.terms import Precision, Split, Verdict
from server.evaluator.results import EvalResult
from server.tasks.reader import parse_task
from server.tasks.task import Task

CORPUS = Path(__file__).parent / "corpus"
KINDS = ("cpu", "cuda")
"""Kinds of device. Submissions for the CPU lie in corpus/<task>, those for a GPU in corpus/gpu/<task>."""


def folder_of(kind: str) -> Path:
    """Where the tasks for that kind of device lie."""
    return {"cpu": CORPUS, "cuda": CORPUS / "gpu"}[kind]


@cache
def small_task(name: str, kind: str = "cpu") -> Task:
    """Task that `task.py` in the folder `name` defines; comments at its top give its level and its precision."""
    source = (folder_of(kind) / name / "task.py").read_text(encoding="utf-8")
    notes = _notes(source)
    read = parse_task(source, f"{name}.py")
    more = read.more_sources if kind == "cuda" else read.more_cpu_sources
    source = source if read.cpu_source is None else read.cpu_source
    # Not the name alone: a built-in task of the same name may have rights of its own.
    return Task(
        f"{name}_for_tests",
        int(_one(notes, "level")),
        Split.RESERVED,
        Precision(_one(notes, "precision")),
        source,
        origin="tests",
        more_sources=more,
        more_cpu_sources=more,
    )


class Intent(StrEnum):
    """What the author of a submission was after."""

    HONEST = "honest"
    BROKEN = "broken"
    """Meant to work, and does not."""

    HOSTILE = "hostile"
    """Meant to be paid for what it does not do, or to do harm."""


@dataclass(frozen=True, slots=True)
class Case:
    """One file of the corpus. Its path and the comments at its top say what must come out; see corpus/README.md."""

    path: Path
    kind: str
    """`cpu` or `cuda`."""

    verdict: Verdict
    """That of the path."""

    others: tuple[Verdict, ...]
    """`# or: VERDICT` where a race decides."""

    says: tuple[str, ...]
    """`# says: TEXT`: the feedback holds it."""

    slower_than_ms: float | None
    """`# slower than: N ms`: what was measured is no less."""

    as_slow_as: Path | None
    """`# as slow as: FILE`: what was measured is no less than the time of that file, but for a few percent."""

    needs_isolation: bool
    """`# needs isolation`: harmless only where a candidate has a uid of its own."""

    open_hole: str | None
    """`# open: REASON`: does not come out as it must, yet."""

    intent: Intent
    """`# intent: INTENT`, or what the verdict suggests."""

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """Each of these is right."""
        return frozenset({self.verdict, *self.others})

    @property
    def task(self) -> Task:
        """Task of the folder it lies in."""
        return small_task(self.path.parent.name, self.kind)

    @property
    def name(self) -> str:
        """For a test's id and a table: the path in the corpus."""
        return str(self.path.relative_to(CORPUS).with_suffix(""))

    @property
    def reply(self) -> str:
        """What the agent sends."""
        return self.path.read_bytes().decode("utf-8")

    @property
    def digest(self) -> str:
        """Of everything that decides what comes out and lies in the corpus."""
        parts = [self.path, self.path.parent / "task.py", *([self.as_slow_as] if self.as_slow_as else [])]
        return hashlib.sha256(b"\0".join(part.read_bytes() for part in parts)).hexdigest()[:16]

    def shortfalls(self, result: EvalResult, peer_ms: float | None = None) -> list[str]:
        """What is not as the file states.

        Args:
            peer_ms: Time of `as_slow_as` on the same device, in the same run.
        """
        found = []
        if result.verdict not in self.verdicts:
            found.append(f"expected {' or '.join(sorted(self.verdicts))}, got {result.verdict}")
        found += [f"the feedback does not say {text!r}" for text in self.says if text not in result.feedback]
        measured_ms = result.timing.new_ms if result.timing is not None else 0.0
        least_ms = [self.slower_than_ms] if self.slower_than_ms is not None else []
        if self.as_slow_as is not None:
            least_ms.append(math.inf if peer_ms is None else peer_ms * (1 - PEER_TOLERANCE))
        if result.is_correct:
            found += [f"{measured_ms:.4f} ms is less than {least:.4f} ms" for least in least_ms if measured_ms < least]
        return found


PEER_TOLERANCE = 0.05
"""Two programs that do the same work are measured alike within so much, on a device that nobody else uses."""

_BROKEN_VERDICTS = frozenset(
    {
        Verdict.REJECTED,
        Verdict.COMPILE_ERROR,
        Verdict.RUNTIME_ERROR,
        Verdict.TIMEOUT,
        Verdict.INCORRECT_STRUCTURE,
        Verdict.INCORRECT_SHAPE,
        Verdict.INCORRECT_DTYPE,
        Verdict.INCORRECT_PARAMETERS,
    }
)
"""What mistakes mostly get; the other failures are mostly what cheats get."""


def corpus(kind: str = "cpu") -> tuple[Case, ...]:
    """Every submission for that kind of device. A folder with a `task.py` holds submissions to that task."""
    tasks = sorted(path.parent for path in folder_of(kind).glob("*/task.py"))
    files = [path for task in tasks for path in sorted(task.glob("*.py")) if path.name != "task.py"]
    return tuple(_case(path, kind) for path in files)


def _case(path: Path, kind: str) -> Case:
    fitting = [verdict for verdict in Verdict if path.stem.startswith(f"{verdict.value}_")]
    notes = _notes(path.read_bytes().decode("utf-8").removeprefix("\ufeff"))
    stated = max(fitting, key=lambda verdict: len(verdict.value))
    slower, peers, intents, holes = (notes[key] for key in ("slower than", "as slow as", "intent", "open"))
    case = Case(
        path=path,
        kind=kind,
        verdict=stated,
        others=tuple(Verdict(other) for other in notes["or"]),
        says=tuple(notes["says"]),
        slower_than_ms=float(slower[0].removesuffix(" ms")) if slower else None,
        as_slow_as=path.parent / peers[0] if peers else None,
        needs_isolation=bool(notes["needs isolation"]),
        open_hole=holes[0] if holes else None,
        intent=Intent.BROKEN,
    )
    return replace(case, intent=Intent(intents[0]) if intents else _likely_intent(case))


def _likely_intent(case: Case) -> Intent:
    if case.slower_than_ms or case.as_slow_as or case.needs_isolation or case.open_hole:
        return Intent.HOSTILE
    if case.verdict is Verdict.PASSED:
        return Intent.HONEST
    return Intent.BROKEN if case.verdict in _BROKEN_VERDICTS else Intent.HOSTILE


_KEYS = ("says", "slower than", "as slow as", "open", "or", "intent", "level", "precision", "needs isolation")


def _notes(text: str) -> dict[str, list[str]]:
    """Values of the comments that begin with a key, by key. Comments of other kinds are none of ours."""
    notes: dict[str, list[str]] = {key: [] for key in _KEYS}
    for line in text.splitlines():
        key, _, value = line.removeprefix("# ").partition(":")
        if line.startswith("# ") and key.strip() in notes:
            notes[key.strip()].append(value.strip() or key)
    return notes


def _one(notes: dict[str, list[str]], key: str) -> str:
    """Value of a comment that has to be there once."""
    (value,) = notes[key]
    return value
