"""Runs the corpus on one kind of device and keeps what came out, one JSON line per case.

    python -m bench.corpus --device cpu --only 'tanh/*'

Trusted side: it starts an evaluator like the server's and gives it every submission under tests/corpus. A case whose
line is right and of the same text is not run again unless `--again`; a new line replaces the old one. The file is
written anew after each case, so a run that is cut off keeps what it has, and several runs may share a file.
"""

import argparse
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kernel_env.models import KernelObservation, Verdict
from server.evaluator.evaluator import Evaluator
from server.evaluator.interface import Evaluation
from server.evaluator.results import EvalResult
from server.rubrics import kernel_rubric
from server.settings import Settings
from tests.cases import Case, corpus
from tests.evaluations import evaluate, gpu_settings, small_settings

from . import machine
from .lines import Lines, read, store

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(__file__).parent / "data"
MAX_FEEDBACK_CHARS = 200


@contextmanager
def evaluator_on(device: str) -> Iterator[Evaluator]:
    """An evaluator with the limits of the tests, on `cpu` or a CUDA device."""
    with tempfile.TemporaryDirectory() as cache:
        settings: Settings = small_settings(Path(cache)) if device == "cpu" else gpu_settings(device)
        made = Evaluator(settings)
        try:
            yield made
        finally:
            made.close()


def kind_of(device: str) -> str:
    """`cpu` or `cuda`."""
    return device.partition(":")[0]


def reward_of(result: EvalResult) -> float | None:
    """What the environment would pay for a result."""
    fraction = None
    if result.timing is not None and result.roofline is not None and result.timing.mode != "interpreted":
        fraction = result.roofline_frac
    observation = KernelObservation(
        verdict=result.verdict,
        stage=result.stage,
        correct=result.is_correct,
        timing=result.timing.mode if result.timing is not None else None,
        roofline_frac=fraction,
        own_share=result.own_share,
    )
    reward: float | None = kernel_rubric()(None, observation)
    return reward


def revision() -> str:
    """Short hash of the commit, with a plus if files differ from it."""
    try:
        head = _git("rev-parse", "--short", "HEAD").strip()
        return head + ("+" if _git("status", "--porcelain").strip() else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


@dataclass(slots=True)
class Run:
    """One pass over cases."""

    evaluator: Evaluation
    about: Mapping[str, Any]
    """Device, versions and commit, for every line."""

    _peers_ms: dict[Path, float | None] = field(default_factory=dict)

    def line(self, case: Case) -> dict[str, Any]:
        """Evaluate one case. A fault of ours is a line as well."""
        start = time.monotonic()
        line: dict[str, Any] = {
            "case": case.name,
            "intent": case.intent.value,
            "expected": " or ".join([case.verdict, *case.others]),
        }
        try:
            peer_ms = self._peer_ms(case)
            start = time.monotonic()
            result = evaluate(self.evaluator, case.task, case.reply)
        except Exception as error:  # noqa: BLE001 - whatever went wrong here is ours, and the next case is tried
            traceback.print_exc()
            text = f"{type(error).__name__}: {error}"
            line |= {"got": Verdict.INFRA_ERROR.value, "ok": False, "why": text[:MAX_FEEDBACK_CHARS]}
        else:
            shortfalls = case.shortfalls(result, peer_ms)
            line |= {"got": result.verdict.value, "ok": not shortfalls}
            if shortfalls:
                line["why"] = "; ".join(shortfalls)[:MAX_FEEDBACK_CHARS]
                line["feedback"] = result.feedback[:MAX_FEEDBACK_CHARS]
            if result.timing is not None:
                line |= {"t_new_ms": result.timing.new_ms, "own_share": result.own_share, "reward": reward_of(result)}
        seconds = round(time.monotonic() - start, 2)
        return {**line, "seconds": seconds, "digest": case.digest, **self.about}

    def _peer_ms(self, case: Case) -> float | None:
        """Time of the program that the case must be as slow as, measured once per run."""
        path = case.as_slow_as
        if path is not None and path not in self._peers_ms:
            timing = evaluate(self.evaluator, case.task, path.read_text(encoding="utf-8")).timing
            self._peers_ms[path] = None if timing is None else timing.new_ms
        return None if path is None else self._peers_ms[path]


def is_settled(case: Case, lines: Lines) -> bool:
    """Whether the file already says that this text got what it must."""
    line = lines.get(case.name)
    return line is not None and line["ok"] and line["digest"] == case.digest


def main() -> int:
    """Entry point. The exit status says whether every case that was run got what it must."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True, help="cpu, or a CUDA device such as cuda:0")
    parser.add_argument("--only", action="append", metavar="GLOB", help="such as 'tanh/passed_*'")
    parser.add_argument("--out", type=Path, help="default: bench/data/corpus_cpu.jsonl or corpus_cuda.jsonl")
    parser.add_argument("--again", action="store_true", help="also cases that are settled")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="begin no case after so many seconds")
    parser.add_argument("--commit", help="for hosts without a repository")
    arguments = parser.parse_args()
    kind = kind_of(arguments.device)
    out = arguments.out or DATA / f"corpus_{kind}.jsonl"
    globs = arguments.only or ["*"]
    cases = [case for case in corpus(kind) if any(fnmatchcase(case.name, glob) for glob in globs)]
    settled = [] if arguments.again else [case for case in cases if is_settled(case, read(out))]
    due = [case for case in cases if case not in settled]
    print(f"{len(cases)} cases, {len(settled)} settled before", flush=True)
    end = time.monotonic() + arguments.limit_s
    done: list[dict[str, Any]] = []
    if due:
        with evaluator_on(arguments.device) as evaluator:
            about = {"device": evaluator.devices[0].name, **machine.describe()}
            run = Run(evaluator, {**about, "commit": arguments.commit or revision()})
            for case in due:
                if time.monotonic() >= end:
                    break
                done.append(run.line(case))
                store(out, done[-1])
                mark = "ok" if done[-1]["ok"] else f"NOT OK: {done[-1]['why']}"
                print(f"{case.name}: {done[-1]['got']}, {done[-1]['seconds']} s, {mark}", flush=True)
    return _summary(due, done)


def _summary(due: list[Case], done: list[dict[str, Any]]) -> int:
    wrong = [line for line in done if not line["ok"]]
    holes = {case.name: case.open_hole for case in due if case.open_hole is not None}
    print(f"\n{len(done)} run, {len(done) - len(wrong)} right, {len(wrong)} wrong, {len(due) - len(done)} left undone")
    for line in wrong:
        hole = f" [open: {holes[line['case']]}]" if line["case"] in holes else ""
        print(f"  {line['case']}: {line['why']}{hole}\n    {line.get('feedback', '')!r}")
    return int(any(line["case"] not in holes for line in wrong) or len(done) < len(due))


if __name__ == "__main__":
    raise SystemExit(main())
