"""Takes each guard away and runs the exploit it is for: with the guard it is refused, without it it gets through.

    python -m bench.guards --only poison

Trusted side. One JSON line per guard in bench/data/guards_cpu.jsonl; `bench.corpus_report` makes the table.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from server.evaluator.evaluator import Evaluator
from server.evaluator.results import EvalResult
from tests.cases import Case, corpus
from tests.evaluations import evaluate, small_settings
from tests.without import GUARDS, Guard, evaluator_without

from . import machine
from .corpus import DATA, revision, reward_of
from .lines import store

OUT = DATA / "guards_cpu.jsonl"


def case_of(guard: Guard) -> Case:
    """The submission that shows a guard."""
    return next(case for case in corpus("cpu") if case.name == guard.case)


def outcome(evaluator: Evaluator, case: Case) -> dict[str, Any]:
    """Verdict, time and reward of a case, and whether it got through."""
    result: EvalResult = evaluate(evaluator, case.task, case.reply)
    found: dict[str, Any] = {"verdict": result.verdict.value, "through": bool(case.shortfalls(result))}
    if result.timing is not None:
        found |= {"t_new_ms": round(result.timing.new_ms, 4), "reward": reward_of(result)}
    else:
        found["reward"] = 0.0
    return found


def is_paid(case: Case, found: dict[str, Any]) -> bool:
    """Whether an exploit had what it was after: a reward, a shorter time, or what it looked around for."""
    return bool(found["through"]) and (found["verdict"] == "passed" or case.verdict == "passed")


def line(guard: Guard, usual: Evaluator) -> dict[str, Any]:
    """Both outcomes of one guard."""
    case, start = case_of(guard), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        on = outcome(usual, case)
        with evaluator_without(guard, small_settings(Path(folder))) as other:
            off = outcome(other, case)
    return {
        "case": guard.name,
        "what": guard.what,
        "exploit": case.name,
        "digest": case.digest,
        "with": on,
        "without": off,
        "ok": not on["through"] and is_paid(case, off),
        "seconds": round(time.monotonic() - start, 1),
        "commit": revision(),
        **machine.describe(),
    }


def main() -> int:
    """Entry point. The exit status says whether every guard that was tried is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="GUARD", help="may be repeated")
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        usual = Evaluator(small_settings(Path(folder)))
        try:
            for guard in GUARDS:
                if arguments.only and guard.name not in arguments.only:
                    continue
                found = line(guard, usual)
                store(OUT, found)
                wrong += not found["ok"]
                print(
                    f"{guard.name}: {found['with']} -> {found['without']} {'ok' if found['ok'] else 'NO GUARD'}",
                    flush=True,
                )
        finally:
            usual.close()
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
