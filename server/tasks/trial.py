"""Runs a task's reference in a child, and says what an evaluation would make of it. Trusted side; no torch here."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import EvaluatorError
from ..evaluator.child_programs import command_of, program_environment
from .children import run_to_end
from .lint import Finding
from .roles import has_free_inputs
from .task import Task

TIMEOUT_S = 120.0
"""Import of torch, calibration and comparisons; a built-in task takes 10 s or so."""

_THREADS = 2
_TWO_RUNS = {
    "equal": "equal bit for bit",
    "close": "different bits, within the tolerance",
    "different": "different values",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """Outcome of a run."""

    facts: tuple[str, ...]
    findings: tuple[Finding, ...]


def run(task: Task, *, timeout_s: float = TIMEOUT_S) -> Trial:
    """Build and call the reference at each of its CPU sizes.

    Returns:
        Facts about the first size, findings about all.
    Raises:
        EvaluatorError: Our fault: a child cannot be started, or its answer makes no sense.
    """
    sizes = task.at_sizes("cpu")
    trials = [_run_at_one_size(sized, task, timeout_s) for sized in sizes]
    findings: list[Finding] = []
    for number, trial in enumerate(trials, start=1):
        where = "" if number == 1 else f"at further CPU size {number - 1}: "
        findings += [replace(finding, message=where + finding.message) for finding in trial.findings]
    return Trial(trials[0].facts, tuple(findings))


def _run_at_one_size(sized: Task, task: Task, timeout_s: float) -> Trial:
    request = {
        "task_id": task.task_id,
        "source": sized.source_for("cpu"),
        "precision": task.precision.value,
        "has_free_inputs": has_free_inputs(task.task_id),
        "threads": min(_THREADS, os.cpu_count() or 1),
    }
    try:
        ended = run_to_end(
            command_of("examiner.trial_program", ()),
            program_environment("cpu", "cpu", {}),
            timeout_s=timeout_s,
            stdin=json.dumps(request).encode(),
        )
    except OSError as error:
        raise EvaluatorError("the trial could not be started") from error
    if ended is None:
        return Trial((), (_finding(f"no result within {timeout_s:g} s{_hint(task)}"),))
    if ended.status < 0:
        name = signal.Signals(-ended.status).name
        return Trial((), (_finding(f"the process was ended by {name}{_hint(task)}"),))
    try:
        report = json.loads(ended.output)
        return Trial(tuple(_facts(report)), tuple(_findings(report, task)))
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluatorError("the trial gave no result") from error


def _facts(report: Mapping[str, Any]) -> Iterator[str]:
    if "outputs" in report:
        shown = (f"{output['dtype']} ({', '.join(map(str, output['shape']))})" for output in report["outputs"])
        yield f"outputs: {'; '.join(shown)}"
        yield f"two runs: {_TWO_RUNS[report['two_runs']]}"
        if report["writes_to_inputs"]:
            yield "forward writes to its inputs"
    if "shortcuts" in report:
        yield f"inputs drawn from: {', '.join(report['distributions'])}"
        yield f"tolerance: {report['factor']:.3g} times that of the contract"
        for name, right in report["shortcuts"].items():
            if isinstance(right, str):
                yield f"{name}: cannot be tried, {right}"
            else:
                yield f"{name}: {'would pass with inputs ' + ', '.join(right) if right else 'would fail'}"


def _findings(report: Mapping[str, Any], task: Task) -> Iterator[Finding]:
    if report.get("two_runs") == "different":
        yield _finding("two calls with the same inputs give different values; no kernel can be compared with that")
    if report["refused"] is not None:
        yield _finding(f"cannot be judged: {report['refused']}{_hint(task)}")
    for name, right in report.get("shortcuts", {}).items():
        if isinstance(right, list) and len(right) == len(report["distributions"]):
            yield _finding(f"{name} would pass with every kind of inputs: a submission needs no kernel")


def _hint(task: Task) -> str:
    return "" if task.cpu_source is not None else "; the file has no CPU_SIZES, so it ran at the size for a GPU"


def _finding(message: str) -> Finding:
    return Finding(0, "run", message)
