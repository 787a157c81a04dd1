"""What a file of the corpus states is read off it, and held against a result."""

from pathlib import Path

import pytest

from kernel_env.terms import Stage, Verdict
from server.evaluator.results import EvalResult, Roofline, Timing
from tests import cases
from tests.cases import KINDS, Case, Intent, corpus, folder_of

PASSED = EvalResult(
    verdict=Verdict.PASSED,
    stage=Stage.DONE,
    feedback="passed: well done",
    timing=Timing("eager", 1.0, 0.9, 1.1, 8, 10, 2.0, 2.0),
    roofline=Roofline(0.5, "memory", 1e6, 0.0),
)
FAILED = EvalResult(verdict=Verdict.INCORRECT_VALUE, stage=Stage.CORRECTNESS, feedback="wrong at [0, 3]")


def case_of(tmp_path: Path, name: str, *comments: str) -> Case:
    path = tmp_path / f"{name}.py"
    path.write_text("\n".join(['"""What it does."""', *(f"# {comment}" for comment in comments), "", "import torch\n"]))
    (tmp_path / "task.py").write_text("# level: 1\n")
    return cases._case(path, "cpu")


def test_longest_verdict_that_fits_the_name_is_stated(tmp_path: Path) -> None:
    assert case_of(tmp_path, "incorrect_value_zeros").verdict is Verdict.INCORRECT_VALUE
    with pytest.raises(ValueError, match="empty"):
        case_of(tmp_path, "wrong_name")


def test_other_verdicts_are_right_as_well(tmp_path: Path) -> None:
    case = case_of(tmp_path, "timing_rejected_late", "or: incorrect_value", "or: timeout")
    assert case.shortfalls(FAILED) == []
    assert case.shortfalls(PASSED) == ["expected incorrect_value or timeout or timing_rejected, got passed"]


def test_feedback_has_to_say_what_the_file_states(tmp_path: Path) -> None:
    assert case_of(tmp_path, "incorrect_value_a", "says: at [0, 3]").shortfalls(FAILED) == []
    assert case_of(tmp_path, "incorrect_value_b", "says: dtype").shortfalls(FAILED) != []


def test_time_has_to_be_no_less_than_stated(tmp_path: Path) -> None:
    assert case_of(tmp_path, "passed_a", "slower than: 0.9 ms").shortfalls(PASSED) == []
    assert case_of(tmp_path, "passed_b", "slower than: 1.1 ms").shortfalls(PASSED) != []
    either = case_of(tmp_path, "passed_c", "slower than: 1.1 ms", "or: incorrect_value")
    assert either.shortfalls(FAILED) == []


def test_time_has_to_be_that_of_the_peer(tmp_path: Path) -> None:
    (tmp_path / "passed_peer.py").write_text("import torch\n")
    case = case_of(tmp_path, "passed_late", "as slow as: passed_peer.py")
    assert case.shortfalls(PASSED, peer_ms=1.04) == []
    assert case.shortfalls(PASSED, peer_ms=1.06) != []
    assert case.shortfalls(PASSED, peer_ms=None) != [], "without the peer's time nothing is shown"


def test_digest_changes_with_the_task_and_the_peer(tmp_path: Path) -> None:
    (tmp_path / "passed_peer.py").write_text("import torch\n")
    case = case_of(tmp_path, "passed_late", "as slow as: passed_peer.py")
    digests = [case.digest]
    for name in ("task.py", "passed_peer.py", "passed_late.py"):
        (tmp_path / name).write_text("# changed\n")
        digests.append(case.digest)
    assert len(set(digests)) == 4


def test_intent_is_stated_or_guessed(tmp_path: Path) -> None:
    assert case_of(tmp_path, "passed_a").intent is Intent.HONEST
    assert case_of(tmp_path, "passed_b", "slower than: 1 ms").intent is Intent.HOSTILE
    assert case_of(tmp_path, "passed_c", "needs isolation").intent is Intent.HOSTILE
    assert case_of(tmp_path, "compile_error_a").intent is Intent.BROKEN
    assert case_of(tmp_path, "compile_error_b", "intent: hostile").intent is Intent.HOSTILE


@pytest.mark.parametrize("kind", KINDS)
def test_corpus_is_whole(kind: str) -> None:
    """Every folder has a task and an honest submission; every file that another names is there."""
    folders = {path.parent for path in folder_of(kind).glob("*/*.py")}
    assert {case.path.parent for case in corpus(kind)} == folders
    for folder in folders:
        assert (folder / "task.py").exists(), folder.name
        assert (folder / "passed_honest.py").exists(), folder.name
    for case in corpus(kind):
        assert case.task.source
        assert case.as_slow_as is None or case.as_slow_as.exists(), case.name
