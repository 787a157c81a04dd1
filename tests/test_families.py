"""Every known family of exploits, evaluators' bugs and honest habits has a case, a test, or a reason to have none."""

import ast
import csv
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from tests.cases import CORPUS, corpus

ROOT = Path(__file__).parents[1]
GROUPS = {
    "T": "timing",
    "C": "correctness",
    "P": "process",
    "D": "device",
    "R": "reward",
    "B": "evaluator",
    "H": "honest",
}
"""By the letter a family's id begins with."""

REASONS = ("not a concept here: ", "open: ", "refused with a text")
CASES = {kind: corpus(kind) for kind in ("cpu", "cuda")}
COLUMNS = {"cpu": "cpu", "cuda": "gpu"}


def families() -> list[dict[str, str]]:
    with (CORPUS / "families.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def matching(glob: str, kind: str) -> list[str]:
    return [case.name for case in CASES[kind] if fnmatchcase(case.name, glob)]


def test_families_are_named_once_and_every_group_is_there() -> None:
    names = Counter(row["family"] for row in families())
    assert [name for name, count in names.items() if count > 1] == []
    assert {(row["family"][0], row["group"]) for row in families()} == set(GROUPS.items())


@pytest.mark.parametrize("row", families(), ids=lambda row: row["family"])
def test_family_is_covered_by_what_exists(row: dict[str, str]) -> None:
    assert row["what"]
    assert row["cpu"] or row["gpu"] or row["elsewhere"] or row["note"], "a gap"
    for kind, column in COLUMNS.items():
        for glob in row[column].split():
            assert matching(glob, kind), glob
    for node in row["elsewhere"].split():
        path, _, name = node.partition("::")
        assert name in functions_of(path), node
    assert row["note"] == "" or row["note"].startswith(REASONS)


def test_family_of_a_known_hole_says_so() -> None:
    """A case that is marked open stands for a family whose note says open."""
    said = [row for row in families() if row["note"].startswith("open: ")]
    pairs = [(kind, glob) for row in said for kind, column in COLUMNS.items() for glob in row[column].split()]
    named = {name for kind, glob in pairs for name in matching(glob, kind)}
    holes = {case.name for cases in CASES.values() for case in cases if case.open_hole is not None}
    assert holes <= named
