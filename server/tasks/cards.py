"""What is known of each task on a device: measured once, one line per task and size, kept in a file. No torch here.

A card says what a task moves and computes, how exact it can be asked to be, which answers without a kernel would pass,
and how fast PyTorch is beside the floor. `kernel-env tasks audit` makes them; a run that was cut off goes on where it
stopped.
"""

import hashlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from ..errors import EvaluatorError
from ..evaluator.child_programs import command_of, program_environment
from .roles import has_free_inputs
from .task import Task

VERSION = 1
"""Raised when cards of before say something else."""

START_TIMEOUT_S = 180.0
END_TIMEOUT_S = 1.0
TASK_TIMEOUT_S = 300.0
FLOOR_MARGIN = 0.95
"""A time below this share of the floor shows that the floor is too high."""

Card = dict[str, Any]


def read_cards(file: Path) -> dict[str, Card]:
    """Cards by key; the last line of a key counts. Nothing if there is no file."""
    if not file.exists():
        return {}
    return {card["key"]: card for card in map(json.loads, file.read_text(encoding="utf-8").splitlines())}


def key_of(sized: Task, kind: str) -> str:
    """Digest of all that a card follows from, but for the machine."""
    free = has_free_inputs(sized.task_id)
    text = json.dumps([VERSION, kind, sized.task_id, sized.source_for(kind), sized.precision.value, free])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def faults_of(card: Mapping[str, Any]) -> list[str]:
    """Why a task of this card should not be given to an agent; empty if it may."""
    if card.get("refused"):
        return [f"refused: {card['refused']}"]
    faults = []
    if card["two_runs"] == "different":
        faults.append("two calls differ")
    every = len(card["distributions"])
    for name, right in card["shortcuts"].items():
        if isinstance(right, list) and len(right) == every:
            faults.append(f"passes: {name}")
    if card["own_output_fails"]:
        faults.append(f"PyTorch's own output fails: {', '.join(card['own_output_fails'])}")
    fastest = fastest_ms(card)
    if fastest < FLOOR_MARGIN * card["floor_ms"]:
        faults.append(f"PyTorch takes {fastest / card['floor_ms']:.2f} of the floor")
    return faults


def fastest_ms(card: Mapping[str, Any]) -> float:
    """Least time per call of PyTorch that was measured, milliseconds."""
    times = (card[name] for name in ("eager_ms", "graph_ms", "compiled_ms"))
    return min(float(time_ms) for time_ms in times if isinstance(time_ms, float))


def audit(
    tasks: Iterable[Task],
    device: str,
    file: Path,
    *,
    with_compile: bool = False,
    limit_s: float | None = None,
    task_timeout_s: float = TASK_TIMEOUT_S,
    tell: Callable[[Card], None] = lambda _: None,
) -> list[Card]:
    """Make the cards that are missing in `file`, each of them written as soon as it is there.

    Args:
        device: `cpu`, or `cuda:N`.
        with_compile: Time `torch.compile` as well.
        limit_s: Begin none after so many seconds.
        tell: Called with every card, those that were there included.
    Returns:
        Cards of all sizes of the tasks, in their order, as far as they are there.
    Raises:
        EvaluatorError: Our fault: the program cannot be started.
    """
    kind = device.partition(":")[0]
    end = float("inf") if limit_s is None else time.monotonic() + limit_s
    known, cards = read_cards(file), []
    with _Program(device) as program:
        for task in tasks:
            for number, sized in enumerate(task.at_sizes(kind)):
                key = key_of(sized, kind)
                card = known.get(key)
                if card is None:
                    if time.monotonic() > end:
                        continue
                    card = {"key": key, "task": task.task_id, "size": number, "level": task.level}
                    card |= {"precision": task.precision.value, "date": time.strftime("%Y-%m-%d")}
                    card |= program.card(sized, kind, with_compile=with_compile, timeout_s=task_timeout_s)
                    _append(file, card)
                tell(card)
                cards.append(card)
    return cards


def _append(file: Path, card: Card) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(card) + "\n")


class _Program:
    """The program that measures, started when it is needed, and again after it ended."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._process: subprocess.Popen[str] | None = None
        self._hello: Card = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def card(self, sized: Task, kind: str, *, with_compile: bool, timeout_s: float) -> Card:
        """What it finds; a task that ends it, or takes too long, is refused for that.

        Raises:
            EvaluatorError: It cannot be started.
        """
        request = {
            "task_id": sized.task_id,
            "source": sized.source_for(kind),
            "precision": sized.precision.value,
            "has_free_inputs": has_free_inputs(sized.task_id),
            "compile": with_compile,
        }
        process = self._running()
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        answer = self._answer(timeout_s)
        return self._hello | ({"refused": self._end()} if answer is None else answer)

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            kind, _, index = self._device.partition(":")
            threads = max(1, (os.cpu_count() or 1) // 2)
            local = "cuda:0" if kind == "cuda" else "cpu"
            self._process = subprocess.Popen(
                command_of("examiner.card_program", (local, str(threads))),
                env=program_environment(kind, f"{kind}:{index}" if index else kind, {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            hello = self._answer(START_TIMEOUT_S)
            if hello is None:
                raise EvaluatorError(f"the program that measures tasks cannot use {self._device}: {self._end()}")
            self._hello = {name: hello[name] for name in ("device", "torch")}
        return self._process

    def _answer(self, timeout_s: float) -> Card | None:
        """Next line; None if it ended or took too long."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], timeout_s)
        line = process.stdout.readline() if ready else ""
        if not line.endswith("\n"):
            return None
        found: Card = json.loads(line)
        return found

    def _end(self) -> str:
        """End it; says how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "it was not running"
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            status = process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "no answer in time"
        finally:
            process.stdout.close()
        return f"the process ended with {signal.Signals(-status).name if status < 0 else f'status {status}'}"
