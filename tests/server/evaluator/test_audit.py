"""Audit bundles: written whole or not at all, bounded, private, and enough to judge again."""

import json
import stat
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from kernel_env.terms import Language, Precision, Split, Stage, Verdict
from server.errors import InvalidRequest
from server.evaluator import audit
from server.evaluator.audit import Archive, Reason, reasons_for
from server.evaluator.evaluator import Evaluator
from server.evaluator.results import EvalResult, Roofline, Submission, Timing
from server.rejudge import Rejudged, compare, rejudge
from server.settings import Keep
from server.tasks.task import Task
from tests.evaluations import CORPUS, evaluate, honest_code, small_settings, small_task

TASK = Task("level1/1_Some task", 1, Split.TRAIN, Precision.IEEE, "class Model: ...")
SUBMISSION = Submission("class ModelNew: ...  # \ud800", Language.CPP)
TRAIL: dict[str, Any] = {"secret": "5a" * 32, "operators": ["aten.empty", "native.run"], "repetitions": []}
RESULT = EvalResult(
    Verdict.PASSED,
    Stage.DONE,
    "passed",
    timing=Timing("eager", 1.0, 0.9, 1.1, 8, 12, 2.0, 2.0),
    roofline=Roofline(0.5, "memory", 1e6, 0.0),
    precision=Precision.IEEE,
)
PLACE = audit.environment("cpu", {"name": "some processor", "gpu_id": "cpu", "ceilings": {}}, "strong")


def stored(archive: Archive, result: EvalResult = RESULT, trail: dict[str, Any] | None = TRAIL) -> Path | None:
    return archive.consider(TASK, SUBMISSION, result, trail, lambda: PLACE)


@pytest.mark.parametrize(
    ("changes", "operators", "reasons"),
    [
        ({}, ["native.run"], []),
        ({}, ["triton.kernel", "aten.empty"], []),
        ({"suspicious": True}, ["native.run"], [Reason.SUSPICIOUS]),
        ({"verdict": Verdict.ROOFLINE_VIOLATION}, ["native.run"], [Reason.ROOFLINE_VIOLATION]),
        ({"own_share": 0.1}, ["native.run", "aten.mm"], [Reason.POLICY_DOUBT]),
        ({"own_share": 0.6}, ["native.run", "aten.mm"], []),
        ({}, ["native.run", "aten.mm"], [Reason.POLICY_DOUBT]),
        ({}, ["aten.empty"], [Reason.POLICY_DOUBT]),
        ({"verdict": Verdict.INCORRECT_VALUE, "stage": Stage.TIMING}, [], []),
        ({"verdict": Verdict.DEVICE_FAULT, "stage": Stage.CORRECTNESS}, [], [Reason.DEVICE_FAULT]),
    ],
)
def test_odd_evaluations_are_kept(changes: dict[str, Any], operators: list[str], reasons: list[Reason]) -> None:
    assert reasons_for(replace(RESULT, **changes), {**TRAIL, "operators": operators}) == reasons


def test_bundle_comes_back_as_it_was_and_is_private(tmp_path: Path) -> None:
    path = stored(Archive(tmp_path / "audit", Keep.ALL))
    assert path is not None
    bundle = audit.read(path)
    assert bundle.the_task() == TASK
    assert bundle.the_submission() == SUBMISSION
    assert bundle.secret == TRAIL["secret"]
    assert bundle.reasons == ["on_request"]
    assert bundle.result["timing"] == asdict(RESULT)["timing"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_what_is_not_odd_is_kept_on_request_only(tmp_path: Path) -> None:
    assert stored(Archive(tmp_path, Keep.FLAGGED)) is None
    assert stored(Archive(tmp_path, Keep.OFF), replace(RESULT, suspicious=True)) is None
    assert list(tmp_path.iterdir()) == []


def test_a_flood_of_one_kind_drives_out_no_other(tmp_path: Path) -> None:
    archive = Archive(tmp_path, Keep.FLAGGED, most_per_reason=3)
    grave = stored(archive, replace(RESULT, verdict=Verdict.ROOFLINE_VIOLATION))
    flood = [stored(archive, replace(RESULT, own_share=0.1, eval_s=float(n))) for n in range(7)]
    kept = set(tmp_path.iterdir())
    assert grave in kept
    assert len(kept) == 4
    assert flood[-1] in kept


def test_bundle_that_is_too_large_or_cannot_be_written_costs_no_evaluation(tmp_path: Path) -> None:
    large = {**TRAIL, "operators": ["x" * audit.MAX_BYTES]}
    assert stored(Archive(tmp_path, Keep.ALL), trail=large) is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    assert stored(Archive(tmp_path / "file", Keep.ALL)) is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda data: data.update(format=2), "format"),
        (lambda data: data.update(code="class Other: ..."), "was changed"),
        (lambda data: data.update(language="cobol"), "cobol"),
        (lambda data: data["task"].pop("source"), "source"),
        (lambda data: data.pop("result"), "result"),
        (lambda data: data.update(surplus=1), "surplus"),
    ],
)
def test_file_that_is_no_bundle_is_refused_with_the_reason(tmp_path: Path, change: Any, text: str) -> None:
    path = stored(Archive(tmp_path, Keep.ALL))
    assert path is not None
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InvalidRequest, match=text):
        audit.read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidRequest, match="no audit bundle"):
        audit.read(path)
    with pytest.raises(InvalidRequest, match="cannot read"):
        audit.read(tmp_path / "absent")


def test_only_what_contradicts_matters(tmp_path: Path) -> None:
    path = stored(Archive(tmp_path, Keep.ALL))
    assert path is not None
    bundle = audit.read(path)

    def agrees(place: dict[str, Any], new_ms: float) -> bool:
        assert RESULT.timing is not None
        now = replace(RESULT, timing=replace(RESULT.timing, new_ms=new_ms))
        return Rejudged(now, compare(bundle, asdict(now), place)).agrees

    elsewhere = audit.environment("cpu", {"name": "another processor", "gpu_id": "cpu", "ceilings": {}}, "strong")
    assert compare(bundle, asdict(RESULT), PLACE) == ()
    assert agrees(PLACE, new_ms=1.05)
    assert not agrees(PLACE, new_ms=2.0)
    assert agrees(elsewhere, new_ms=2.0)
    failed = replace(RESULT, verdict=Verdict.INCORRECT_VALUE, stage=Stage.CORRECTNESS)
    assert not Rejudged(failed, compare(bundle, asdict(failed), elsewhere)).agrees


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, EvalResult]]:
    """Bundles of an honest and of a wrong submission, by an evaluator that keeps all of them."""
    folder = tmp_path_factory.mktemp("kept")
    evaluator = Evaluator(small_settings(folder, Keep.ALL))
    wrong = (CORPUS / "tanh" / "incorrect_value_clamped_line.py").read_text(encoding="utf-8")
    try:
        results = {
            "honest": evaluate(evaluator, small_task("tanh"), honest_code("tanh")),
            "wrong": evaluate(evaluator, small_task("tanh"), wrong),
        }
    finally:
        evaluator.close()
    return folder, results


def test_evaluation_comes_out_the_same_from_its_bundle(kept: tuple[Path, dict[str, EvalResult]]) -> None:
    folder, results = kept
    bundles = {bundle.result["verdict"]: bundle for bundle in map(audit.read, folder.iterdir())}
    assert set(bundles) == {"passed", "incorrect_value"}
    honest = bundles["passed"]
    assert honest.trail is not None
    assert "native.run" in honest.trail["operators"]
    assert len(honest.trail["repetitions"]) > 10
    assert all(repetition["wall_s"] > 0 for repetition in honest.trail["repetitions"])

    again = rejudge(bundles["incorrect_value"], small_settings(folder / "again"))
    assert again.result.verdict is Verdict.INCORRECT_VALUE
    # The inputs were the same, to the last bit: so was the largest error.
    assert again.result.max_abs_err == results["wrong"].max_abs_err
    assert again.result.feedback == results["wrong"].feedback
    assert again.agrees
    assert not (folder / "again").exists()


def test_no_seed_leaves_in_an_observation(kept: tuple[Path, dict[str, EvalResult]]) -> None:
    folder, results = kept
    secrets = [bundle.secret for bundle in map(audit.read, folder.iterdir())]
    assert all(secrets)
    for result in results.values():
        assert not any(secret in str(asdict(result)) for secret in secrets if secret)
