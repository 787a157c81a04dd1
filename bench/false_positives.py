"""Repeats the honest submissions of the corpus while others are evaluated as well: none may be refused.

    python -m bench.false_positives --device cpu --count 300 --sessions 4

Trusted side. One evaluator serves several sessions at once, as a server does; each evaluation is of a text that was not
seen before. The summary is written anew all the time, so a run that is cut off keeps what it has.
"""

import argparse
import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kernel_env.models import Verdict
from server.evaluator.interface import Evaluation
from tests.cases import Case, Intent, corpus
from tests.evaluations import evaluate

from . import machine
from .corpus import DATA, evaluator_on, kind_of, revision

MAX_FEEDBACK_CHARS = 600


@dataclass(frozen=True, slots=True)
class Refusal:
    """An honest submission that did not pass."""

    case: str
    number: int
    """Place in the order in which evaluations began."""

    verdict: str
    feedback: str
    seconds: float
    phases: dict[str, float]


@dataclass(slots=True)
class Load:
    """Evaluations by several threads, each a session of its own."""

    evaluator: Evaluation
    cases: Sequence[Case]
    count: int
    end: float
    """Monotonic time after which none begins."""

    seconds: list[float] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    begun: int = 0
    per_case: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, session_id: str) -> None:
        """Take cases in turn until enough have begun."""
        while (number := self._next()) is not None:
            case = self.cases[number % len(self.cases)]
            start = time.monotonic()
            refusal = self._refusal(case, number, session_id)
            with self._lock:
                self.seconds.append(time.monotonic() - start)
                self.per_case[case.name] += 1
                if refusal is not None:
                    self.refusals.append(refusal)
                    print(f"{refusal.case}: {refusal.verdict}: {refusal.feedback[:300]!r}", flush=True)

    def _next(self) -> int | None:
        with self._lock:
            if self.begun >= self.count or time.monotonic() >= self.end:
                return None
            self.begun += 1
            return self.begun - 1

    def _refusal(self, case: Case, number: int, session_id: str) -> Refusal | None:
        start = time.monotonic()
        phases: dict[str, float] = {}
        try:
            result = evaluate(self.evaluator, case.task, f"{case.reply}\n# {number}\n", session_id)
            verdict, feedback, phases = result.verdict.value, result.feedback, result.phases
        except Exception as error:  # noqa: BLE001 - whatever it is, the submission did not get what it earned
            verdict, feedback = Verdict.INFRA_ERROR.value, f"{type(error).__name__}: {error}"
        if verdict == Verdict.PASSED:
            return None
        seconds = round(time.monotonic() - start, 2)
        return Refusal(case.name, number, verdict, feedback[:MAX_FEEDBACK_CHARS], seconds, phases)

    def summary(self) -> dict[str, object]:
        """What is known so far."""
        with self._lock:
            seconds = sorted(self.seconds) or [0.0]
            return {
                "evaluations": len(self.seconds),
                "cases": len(self.per_case),
                "passed": len(self.seconds) - len(self.refusals),
                "refused": len(self.refusals),
                "seconds_median": round(statistics.median(seconds), 2),
                "seconds_longest": round(seconds[-1], 2),
                "refusals": [asdict(refusal) for refusal in self.refusals],
            }


def main() -> int:
    """Entry point. The exit status says whether all passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True, help="cpu, or a CUDA device such as cuda:0")
    parser.add_argument("--count", type=int, default=300, help="evaluations in all")
    parser.add_argument("--sessions", type=int, default=4, help="evaluations at a time")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="begin none after so many seconds")
    parser.add_argument("--out", type=Path, help="default: bench/data/false_positives_cpu.json or _cuda.json")
    parser.add_argument("--commit", help="for hosts without a repository")
    arguments = parser.parse_args()
    kind = kind_of(arguments.device)
    out = arguments.out or DATA / f"false_positives_{kind}.json"
    cases = [case for case in corpus(kind) if case.intent is Intent.HONEST]
    start = time.monotonic()
    with evaluator_on(arguments.device) as evaluator:
        load = Load(evaluator, cases, arguments.count, start + arguments.limit_s)
        about = {
            "machine": {"device": evaluator.devices[0].name, **machine.describe()},
            "commit": arguments.commit or revision(),
            "sessions": arguments.sessions,
        }
        threads = [threading.Thread(target=load.work, args=(f"session {n}",)) for n in range(arguments.sessions)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(2.0)
            _write(out, {**about, "wall_s": round(time.monotonic() - start), **load.summary()})
    summary = load.summary()
    print(json.dumps({name: value for name, value in summary.items() if name != "refusals"}), flush=True)
    return int(bool(load.refusals) or len(load.seconds) < arguments.count)


def _write(out: Path, document: dict[str, object]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_suffix(".new")
    new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    new.replace(out)


if __name__ == "__main__":
    raise SystemExit(main())
