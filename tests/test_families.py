"""Every known family of exploits, evaluators' bugs and honest habits has a case, a test, or a reason to have none."""

import csv
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.cases import CORPUS, corpus

ROOT = Path(__file__).parents[1]
GROUPS = {"timing", "correctness", "process", "device", "reward", "evaluator", "honest"}
CASES = {kind: [case.name for case in corpus(kind)] for kind in ("cpu", "cuda")}


def families() -> list[dict[str, str]]:
    with (CORPUS / "families.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_families_are_named_once_and_every_group_is_there() -> None:
    names = Counter(row["family"] for row in families())
    assert [name for name, count in names.items() if count > 1] == []
    assert {row["group"] for row in families()} == GROUPS


@pytest.mark.parametrize("row", families(), ids=lambda row: row["family"])
def test_family_is_covered_by_what_exists(row: dict[str, str]) -> None:
    assert row["cpu"] or row["gpu"] or row["elsewhere"] or row["note"], "a gap"
    for kind, column in (("cpu", "cpu"), ("cuda", "gpu")):
        for glob in row[column].split():
            assert any(fnmatchcase(name, glob) for name in CASES[kind]), glob
    for test in row["elsewhere"].split():
        assert (ROOT / test).is_file(), test
