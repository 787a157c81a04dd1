"""Whole evaluations of the corpus, and settings with limits that a broken submission reaches soon."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from kernel_env.terms import Language
from server.evaluator.interface import Evaluation
from server.evaluator.results import EvalResult, Submission
from server.evaluator.submission_text import detect_language, extract
from server.settings import Keep, Settings
from server.tasks.task import Task, languages_for
from tests.cases import CORPUS, Case, corpus, folder_of, small_task

__all__ = [
    "CORPUS",
    "UIDS",
    "UID_BASE",
    "Case",
    "children",
    "corpus",
    "evaluate",
    "gpu_settings",
    "honest_code",
    "processes_of_slots",
    "small_settings",
    "small_task",
]

SLOTS = 3
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
UIDS = range(62100 + 32 * WORKER, 62100 + 32 * (WORKER + 1))
"""Every uid a slot of ours can have; each process that runs tests has its own."""
UID_BASE = UIDS.start


def small_settings(audit_dir: Path, audit: Keep = Keep.FLAGGED) -> Settings:
    """Limits for programs that hang or use too much."""
    return Settings(
        devices=("cpu",),
        slots=SLOTS,
        uid_base=UID_BASE,
        audit=audit,
        audit_dir=audit_dir,
        compile_timeout_s=6.0,
        run_timeout_s=3.0,
        host_memory_gb=1.0,
    )


def gpu_settings(device: str) -> Settings:
    """Shorter limits than usual; room for one slow build of an extension."""
    limits = {"KERNEL_ENV_RUN_TIMEOUT_S": "15", "KERNEL_ENV_COMPILE_TIMEOUT_S": "120", "KERNEL_ENV_DEVICES": device}
    return Settings.from_environ({**os.environ, **limits})


def evaluate(evaluator: Evaluation, task: Task, reply: str, session_id: str = "") -> EvalResult:
    """Result for an agent's reply, read like the environment reads it."""
    kind = evaluator.devices[0].kind
    code = extract(reply)
    offered = languages_for(kind)
    default = Language.CPP if kind == "cpu" else Language.TRITON
    return evaluator.evaluate(task, Submission(code, detect_language(code, offered, default)), session_id=session_id)


@cache
def honest_code(task: str, kind: str = "cpu") -> str:
    """A submission that passes."""
    return (folder_of(kind) / task / "passed_honest.py").read_text(encoding="utf-8")


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
    found = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # threads come and go
            found += [int(pid) for pid in (thread / "children").read_text(encoding="utf-8").split()]
    return found
