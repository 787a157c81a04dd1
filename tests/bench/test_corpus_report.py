"""The pages about the corpus are what the program writes from the lines in bench/data."""

from pathlib import Path

import pytest

from bench import corpus_report
from bench.corpus_report import Row, Standing
from bench.lines import read, store
from bench.markdown import table, with_region
from tests.cases import corpus


def test_pages_are_up_to_date() -> None:
    for page, text in corpus_report.pages().items():
        if page.read_text(encoding="utf-8") != text:
            pytest.fail(f"run `python -m bench.corpus_report`: {page.name} is out of date", pytrace=False)


def test_line_of_an_earlier_text_counts_as_missing() -> None:
    case = corpus("cpu")[0]
    line = {"case": case.name, "got": "passed", "ok": True, "digest": case.digest, "seconds": 1.0}
    assert corpus_report.rows("cpu", {case.name: line})[0].standing is Standing.RIGHT
    earlier = {**line, "digest": "of an earlier text"}
    assert corpus_report.rows("cpu", {case.name: earlier})[0].standing is Standing.MISSING
    assert corpus_report.rows("cpu", {})[0].standing is Standing.MISSING


def test_what_came_out_wrong_is_named_in_the_summary() -> None:
    case = corpus("cpu")[0]
    line = {"case": case.name, "got": "timeout", "ok": False, "why": "expected passed, got timeout"}
    text = corpus_report.summary({"cpu": [Row(case, line)]})
    assert f"| `{case.name}` | wrong | expected passed, got timeout |" in text


def test_new_line_replaces_the_old_one_of_its_case(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    for got in ("timeout", "passed"):
        store(file, {"case": "tanh/b", "got": got})
    store(file, {"case": "tanh/a", "got": "passed"})
    assert read(file) == {name: {"case": name, "got": "passed"} for name in ("tanh/a", "tanh/b")}
    assert [path.name for path in tmp_path.iterdir()] == ["lines.jsonl"]


def test_region_is_replaced_and_the_rest_kept() -> None:
    page = "before\n<!-- begin x -->\nold\n<!-- end x -->\nafter\n"
    new = with_region(page, "x", "new\n")
    assert new == "before\n<!-- begin x -->\n\nnew\n\n<!-- end x -->\nafter\n"
    assert with_region(new, "x", "new\n") == new
    with pytest.raises(ValueError, match="begin y"):
        with_region(page, "y", "new\n")


def test_cell_keeps_its_text() -> None:
    assert table(["a"], [["one | two\nthree"]]).splitlines()[2] == "| one \\| two three |"
