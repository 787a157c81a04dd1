"""`kernel-env tasks`: what there is to solve, where to get more, and what is wrong with a file. Trusted side.

Exit codes beyond those of `server.cli`: 1 when `lint` or `audit` found something, or `fetch` could not fetch.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import cyclopts

from .cards import TASK_TIMEOUT_S, Card, audit, fastest_ms, faults_of
from .fetch import SOURCE, FetchFailed, export_line, fetch, instructions
from .lint import Finding, lint_file
from .pinned import PINNED_REVISION, kernelbench
from .registry import load_one, load_tasks
from .task import Task
from .trial import TIMEOUT_S, run

EXIT_FOUND = 1

AsJson = Annotated[bool, cyclopts.Parameter(name="--json", negative=())]


def tasks_app(source: Callable[[], str | None]) -> cyclopts.App:
    """The group of commands.

    Args:
        source: Gives the path of KERNEL_ENV_TASKS, if it is set, when a command needs it.
    """
    app = cyclopts.App(name="tasks", help="What there is to solve.")

    @app.command(name="list")
    def list_tasks(*, as_json: AsJson = False) -> None:
        """List every task.

        Args:
            as_json: Print a JSON array instead of a table.
        """
        _list(source(), as_json=as_json)

    @app.command(name="show")
    def show_task(task_id: str, /) -> None:
        """Print a task: what is known about it, then its source at the size for a GPU.

        Args:
            task_id: For instance `relu`, or `level1/19_ReLU`.
        """
        task = load_tasks(source()).get(task_id)
        for name, value in _facts(task).items():
            _say(f"# {name}: {value}")
        _say(task.source.rstrip("\n"))

    @app.command(name="audit")
    def audit_tasks(
        *task_ids: str,
        device: str = "cpu",
        out: Path = Path("cards.jsonl"),
        with_compile: Annotated[bool, cyclopts.Parameter(name="--compile", negative=())] = False,
        limit_s: float | None = None,
        task_timeout_s: float = TASK_TIMEOUT_S,
    ) -> int:
        """Measure what each task moves and computes, which answers without a kernel pass, and how fast PyTorch is.

        Goes on where a run that was cut off has stopped.

        Args:
            task_ids: Default: all of them.
            device: `cpu`, or `cuda:0`.
            out: File with one line per task and size.
            with_compile: Time `torch.compile` as well.
            limit_s: Begin no task after so many seconds.
            task_timeout_s: Limit of one task, seconds.
        """
        known = load_tasks(source())
        tasks = [known.get(task_id) for task_id in task_ids] or list(known)
        cards = audit(
            tasks,
            device,
            out,
            with_compile=with_compile,
            limit_s=limit_s,
            task_timeout_s=task_timeout_s,
            tell=lambda card: _say(_summary(card)),
        )
        bad = [card for card in cards if faults_of(card)]
        sizes = sum(len(task.at_sizes(device.partition(":")[0])) for task in tasks)
        _say(f"{len(cards)} of {sizes} sizes of {len(tasks)} tasks, {len(bad)} with a fault")
        return EXIT_FOUND if bad or len(cards) < sizes else 0

    app.command(fetch_tasks, name="fetch")
    app.command(lint_task, name="lint")
    return app


def fetch_tasks(folder: Path, /, *, source: str = SOURCE) -> int:
    """Fetch KernelBench at the pinned revision with git, and check every file of it.

    Args:
        folder: Where to put it; it must not exist, or be empty.
        source: Address or path of another copy of the repository.
    """
    try:
        is_new = fetch(folder, kernelbench(), source)
    except FetchFailed as error:
        sys.stderr.write(f"kernel-env: {error}\n{instructions(folder, kernelbench())}\n")
        return EXIT_FOUND
    _say(f"# KernelBench {PINNED_REVISION[:12]}, {'fetched' if is_new else 'there already'}, every file as pinned")
    _say(export_line(folder))
    return 0


def lint_task(
    file: Path,
    /,
    *,
    run_it: Annotated[bool, cyclopts.Parameter(name="--run", negative=())] = False,
    timeout_s: float = TIMEOUT_S,
    as_json: AsJson = False,
) -> int:
    """Say what is wrong with a task file: what is missing, and how its functions do not fit each other.

    Args:
        file: Python file in KernelBench's format.
        run_it: If nothing is, run the reference on the CPU in a process of its own, and say what a judge would.
        timeout_s: Limit of that run, seconds.
        as_json: Print one JSON object.
    """
    findings = lint_file(file)
    facts: tuple[str, ...] = ()
    if run_it and not findings:
        trial = run(load_one(str(file)), timeout_s=timeout_s)
        facts, findings = trial.facts, trial.findings
    if as_json:
        _say(json.dumps({"findings": [asdict(finding) for finding in findings], "facts": facts}))
    else:
        for line in (*facts, *(_line(file, finding) for finding in findings)):
            _say(line)
        if not findings:
            _say(f"{file}: nothing found")
    return EXIT_FOUND if findings else 0


def _list(source: str | None, *, as_json: bool) -> None:
    tasks = [_facts(task) for task in load_tasks(source)]
    if as_json:
        _say(json.dumps(tasks))
        return
    width = max(len(str(task["task_id"])) for task in tasks)
    for task in tasks:
        _say(f"{task['task_id']:<{width}}  level {task['level']}  {task['split']:<8}  {task['precision']}")


def _facts(task: Task) -> dict[str, str | int]:
    return {
        "task_id": task.task_id,
        "level": task.level,
        "split": task.split.value,
        "precision": task.precision.value,
        "origin": task.origin,
    }


def _summary(card: Card) -> str:
    faults = faults_of(card)
    if card.get("refused") is None:
        speed = f"floor {card['floor_ms']:.4g} ms ({card['bound']}), PyTorch {fastest_ms(card):.4g} ms"
    else:
        speed = ""
    return f"{card['task']} {card['size']}: {'; '.join([*faults, speed]) if faults else speed}"


def _line(file: Path, finding: Finding) -> str:
    """In the form editors and compilers have: file, line, what."""
    place = str(file) if finding.line == 0 else f"{file}:{finding.line}"
    return f"{place}: {finding.rule}: {finding.message}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
