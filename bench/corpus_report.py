"""Writes what came of the corpus and of the guards: all cases into docs/corpus.md, the rest into docs/security.md.

    python -m bench.corpus_report

Reads the lines that `bench.corpus` kept and the corpus itself. A case counts as missing when it has no line, or
when its line is of an earlier text. Nothing is run.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.cases import KINDS, Case, Intent, corpus
from tests.without import GUARDS

from .guards import case_of
from .lines import Lines, read
from .markdown import table, with_region

DATA = Path(__file__).parent / "data"
DOCS = Path(__file__).resolve().parents[1] / "docs"
REGION = "corpus"

TITLES = {"cpu": "CPU", "cuda": "GPU"}
INTRODUCTION = """# The corpus, case by case

Written by `python -m bench.corpus_report` from `bench/data/corpus_cpu.jsonl` and `corpus_cuda.jsonl`; do not edit. The
lines are kept by `python -m bench.corpus --device cpu` (or `cuda:0`). A case lies in `tests/corpus`; its path and its
first comments state what must come out, as [tests/corpus/README.md](../tests/corpus/README.md) describes. The time is
that of one call, by the judge's clock; the seconds are those of the whole evaluation.
"""
LEGEND = """`right`: the verdict, the feedback and the least time are as the file states. `open`: a known hole, named in
the file. `missing`: not run since its text changed. All cases are in [corpus.md](corpus.md).
"""


class Standing(StrEnum):
    """What is known of a case."""

    RIGHT = "right"
    WRONG = "wrong"
    OPEN = "open"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Row:
    """One case and its line."""

    case: Case
    line: dict[str, Any] | None
    """None if missing."""

    @property
    def standing(self) -> Standing:
        """What is known of it."""
        if self.line is None:
            return Standing.MISSING
        if self.line["ok"]:
            return Standing.RIGHT
        return Standing.OPEN if self.case.open_hole is not None else Standing.WRONG

    def cells(self) -> list[str]:
        """For the page of all cases."""
        line = self.line or {}
        time_ms = f"{line['t_new_ms']:.4f}" if "t_new_ms" in line else ""
        seconds = f"{line['seconds']:.1f}" if line else ""
        expected = " or ".join([self.case.verdict, *self.case.others])
        got = line.get("got", "")
        return [f"`{self.case.name}`", self.case.intent, expected, got, self.standing, time_ms, seconds]


def rows(kind: str, lines: Lines) -> list[Row]:
    """Every case for that kind of device, with its line if that is of the present text."""
    found = []
    for case in corpus(kind):
        line = lines.get(case.name)
        found.append(Row(case, line if line is not None and line["digest"] == case.digest else None))
    return found


def full_page(by_kind: dict[str, list[Row]]) -> str:
    """Text of docs/corpus.md."""
    parts = [INTRODUCTION]
    head = ["case", "intent", "expected", "got", "", "t, ms", "s"]
    for kind, found in by_kind.items():
        parts.append(f"## {TITLES[kind]}\n\n{_machines(found)}")
        parts.append(table(head, [row.cells() for row in found]))
    return "\n".join(parts)


def summary(by_kind: dict[str, list[Row]]) -> str:
    """Text of the region in docs/security.md."""
    parts = [_counts(by_kind), LEGEND]
    failures = [row for found in by_kind.values() for row in found if row.standing in {Standing.WRONG, Standing.OPEN}]
    if failures:
        cells = [[f"`{row.case.name}`", row.standing, _reason(row)] for row in failures]
        parts.append(table(["not right", "", "why"], cells))
    return "\n".join(parts)


def _counts(by_kind: dict[str, list[Row]]) -> str:
    cells = []
    for kind, found in by_kind.items():
        for intent in Intent:
            count = Counter(row.standing for row in found if row.case.intent is intent)
            cells.append([TITLES[kind], intent, str(count.total()), *(str(count[standing]) for standing in Standing)])
    return table(["device", "submissions", "cases", *Standing], cells)


def _reason(row: Row) -> str:
    assert row.line is not None
    return row.case.open_hole or str(row.line["why"])


def _machines(found: Sequence[Row]) -> str:
    """One line per machine and set of versions, with how many cases it ran."""
    keys = ("device", "driver", "python", "torch", "triton", "commit", "date")
    count = Counter(tuple(str(row.line[key]) for key in keys) for row in found if row.line is not None)
    lines = [
        f"- {number} cases: {values[0]}, " + ", ".join(f"{k} {v}" for k, v in zip(keys[1:], values[1:], strict=True))
        for values, number in sorted(count.items())
    ]
    return "\n".join(lines or ["Nothing was run yet."]) + "\n"


def guards(lines: Lines) -> str:
    """Text of the other region in docs/security.md: every guard with its exploit, on and off."""
    cells = []
    for guard in GUARDS:
        line = lines.get(guard.name)
        if line is None or line["digest"] != case_of(guard).digest:
            cells.append([guard.what, f"`{guard.case}`", "missing", "missing", ""])
        else:
            mark = "" if line["ok"] else "no guard"
            cells.append([guard.what, f"`{guard.case}`", _outcome(line["with"]), _outcome(line["without"]), mark])
    return table(["guard", "exploit", "with it", "without it", ""], cells)


def _outcome(found: dict[str, Any]) -> str:
    time = f", {found['t_new_ms']:.3g} ms" if "t_new_ms" in found else ""
    return f"`{found['verdict']}`, reward {found['reward']:.2f}{time}"


FUZZED = {
    "packets": "packets of a candidate: decoder, layouts, views of the judge's memory",
    "texts": "an agent's text: extraction, language, static rules",
    "websocket": "frames of a client, whole, in pieces, cut off",
    "http": "HTTP routes, by schemathesis",
}


def fuzzed(lines: Lines) -> str:
    """Text of the third region in docs/security.md."""
    cells = []
    for part, what in FUZZED.items():
        line = lines.get(part, {})
        cells.append([what, *(str(line.get(name, "missing")) for name in ("inputs", "seconds", "faults", "commit"))])
    return table(["what", "inputs", "s", "faults", "commit"], cells)


def refusals(files: dict[str, Path]) -> str:
    """Text of the fourth region in docs/security.md: honest submissions, repeated under load."""
    cells = []
    for kind, file in files.items():
        if file.exists():
            found = json.loads(file.read_text(encoding="utf-8"))
            names = ("evaluations", "cases", "sessions", "refused", "seconds_median", "commit")
            cells.append([found["machine"]["device"], *(str(found[name]) for name in names)])
        else:
            cells.append([TITLES[kind], *["missing"] * 6])
    return table(["device", "evaluations", "submissions", "at a time", "refused", "s, median", "commit"], cells)


def pages() -> dict[Path, str]:
    """Both pages as they should be."""
    by_kind = {kind: rows(kind, read(DATA / f"corpus_{kind}.jsonl")) for kind in KINDS}
    security = DOCS / "security.md"
    text = with_region(security.read_text(encoding="utf-8"), REGION, summary(by_kind))
    text = with_region(text, "guards", guards(read(DATA / "guards_cpu.jsonl")))
    text = with_region(text, "fuzz", fuzzed(read(DATA / "fuzz.jsonl")))
    text = with_region(text, "refusals", refusals({kind: DATA / f"false_positives_{kind}.json" for kind in KINDS}))
    return {DOCS / "corpus.md": full_page(by_kind), security: text}


def main() -> None:
    """Entry point."""
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
