"""Small tasks, the corpus of submissions, and settings with limits that a broken submission reaches soon."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_env.models import Language, Precision, Split, Verdict
from server.evaluator.evaluator import Evaluator
from server.evaluator.results import EvalResult, Submission
from server.evaluator.submission_text import detect_language, extract
from server.settings import Settings
from server.tasks.task import Task, languages_for

CORPUS = Path(__file__).parent / "corpus"
UID_BASE = 62100
SLOTS = 3
UIDS = range(UID_BASE, UID_BASE + 64)
"""Every uid a slot of ours can have, those of other servers skipped."""

_HEAD = """
import torch
import torch.nn as nn


def get_inputs():
    return [torch.randn(64, 1024)]


"""

_SOURCES = {
    "tanh": """
def get_init_inputs():
    return []


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)
""",
    "affine": """
def get_init_inputs():
    return [1024]


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return x * self.weight + self.bias
""",
}


def small_task(name: str) -> Task:
    """Task of that name: `tanh` or `affine`, an elementwise product and sum with two parameters."""
    source = _HEAD + _SOURCES[name]
    return Task(name, 1, Split.RESERVED, Precision.IEEE, source, origin="tests")


def small_settings(cache_dir: Path) -> Settings:
    """Limits for programs that hang or use too much."""
    return Settings(
        devices=("cpu",),
        slots=SLOTS,
        uid_base=UID_BASE,
        cache_dir=cache_dir,
        compile_timeout_s=6.0,
        run_timeout_s=3.0,
        host_memory_gb=1.0,
    )


@dataclass(frozen=True, slots=True)
class Case:
    """One file of the corpus. Its path and the comments at its top say what must come out."""

    path: Path
    verdicts: frozenset[Verdict]
    """That of the path, and those of `# or: VERDICT` where a race decides."""

    says: tuple[str, ...]
    """`# says: TEXT`: the feedback holds it."""

    slower_than_ms: float | None
    """`# slower than: N ms`: what was measured is no less."""

    needs_isolation: bool
    """`# needs isolation`: harmless only where a candidate has a uid of its own."""

    open_hole: str | None
    """`# open: REASON`: does not come out as it must, yet."""

    @property
    def task(self) -> Task:
        """Task of the folder it lies in."""
        return small_task(self.path.parent.name)

    @property
    def name(self) -> str:
        """For a test's id."""
        return f"{self.path.parent.name}/{self.path.stem}"


def corpus() -> tuple[Case, ...]:
    """Every file of the folders that name a small task."""
    return tuple(_case(path) for task in sorted(_SOURCES) for path in sorted((CORPUS / task).glob("*.py")))


def _case(path: Path) -> Case:
    fitting = [verdict for verdict in Verdict if path.stem.startswith(f"{verdict.value}_")]
    text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    notes = [line.removeprefix("# ").strip() for line in text.splitlines() if line.startswith("# ")]
    named = {key: [n.removeprefix(f"{key}: ") for n in notes if n.startswith(f"{key}: ")] for key in _KEYS}
    slower = named["slower than"]
    stated = max(fitting, key=lambda verdict: len(verdict.value))
    return Case(
        path,
        frozenset({stated, *(Verdict(other) for other in named["or"])}),
        tuple(named["says"]),
        float(slower[0].removesuffix(" ms")) if slower else None,
        "needs isolation" in notes,
        named["open"][0] if named["open"] else None,
    )


_KEYS = ("says", "slower than", "open", "or")


def evaluate(evaluator: Evaluator, task: Task, reply: str, session_id: str = "") -> EvalResult:
    """Result for an agent's reply, read like the environment reads it."""
    code = extract(reply)
    language = detect_language(code, languages_for("cpu"), Language.CPP)
    return evaluator.evaluate(task, Submission(code, language), session_id=session_id)


@cache
def honest_code(task: str) -> str:
    """A submission that passes."""
    return (CORPUS / task / "passed_honest.py").read_text(encoding="utf-8")


def processes_of_slots() -> list[int]:
    """Processes that run under a slot's uid, those that only wait to be collected left out."""
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            status = Path(entry.path, "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if int(fields["Uid"].split()[0]) in UIDS and fields["State"].split()[0] not in {"Z", "X"}:
            found.append(int(entry.name))
    return found


def children() -> list[int]:
    """Processes this one has started and not yet collected."""
    return [
        int(pid)
        for thread in Path("/proc/self/task").iterdir()
        for pid in (thread / "children").read_text(encoding="utf-8").split()
    ]
