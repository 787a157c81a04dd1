"""What goes into an evaluation and comes out of it: impossible values cannot be built."""

import hashlib
from dataclasses import FrozenInstanceError, replace

import pytest

from kernel_env.terms import UNSCORED, Language, Stage, Verdict
from server.evaluator.results import EvalResult, Roofline, Submission, Timing, over_sizes

TIMING = Timing("graph", 1.0, 0.9, 1.1, calls=8, repetitions=16, ref_ms=2.0, ref_eager_ms=2.5)
ROOFLINE = Roofline(0.5, "memory", 1e9, 0.0)
CORRECT = (Verdict.PASSED, Verdict.ROOFLINE_VIOLATION)
WRONG = sorted(set(Verdict) - UNSCORED - set(CORRECT))


def test_the_digest_is_that_of_the_code() -> None:
    code = "x = 'naïve'\n"
    assert Submission(code, Language.CPP).sha256 == hashlib.sha256(code.encode()).hexdigest()


def test_the_digest_does_not_depend_on_the_language_and_tells_lone_surrogates_apart() -> None:
    assert Submission("x", Language.CPP).sha256 == Submission("x", Language.TRITON).sha256
    digests = {Submission(code, Language.CPP).sha256 for code in ("\ud800", "\ud801", "?", "")}
    assert len(digests) == 4


@pytest.mark.parametrize("verdict", CORRECT)
def test_a_correct_result_reached_the_end_with_its_numbers(verdict: Verdict) -> None:
    assert EvalResult(verdict, Stage.DONE, "", timing=TIMING, roofline=ROOFLINE).is_correct


@pytest.mark.parametrize("verdict", WRONG)
def test_a_wrong_result_stopped_at_a_stage(verdict: Verdict) -> None:
    assert not EvalResult(verdict, Stage.CORRECTNESS, "why").is_correct


@pytest.mark.parametrize("verdict", WRONG)
def test_a_wrong_result_cannot_have_reached_the_end(verdict: Verdict) -> None:
    with pytest.raises(ValueError, match="does not fit stage"):
        EvalResult(verdict, Stage.DONE, "", timing=TIMING, roofline=ROOFLINE)


@pytest.mark.parametrize("verdict", CORRECT)
@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.DONE])
def test_a_correct_result_cannot_have_stopped_before(verdict: Verdict, stage: Stage) -> None:
    with pytest.raises(ValueError, match="does not fit stage"):
        EvalResult(verdict, stage, "", timing=TIMING, roofline=ROOFLINE)


@pytest.mark.parametrize("verdict", CORRECT)
@pytest.mark.parametrize(("timing", "roofline"), [(None, ROOFLINE), (TIMING, None), (None, None)])
def test_a_correct_result_without_its_numbers_is_impossible(
    verdict: Verdict, timing: Timing | None, roofline: Roofline | None
) -> None:
    with pytest.raises(ValueError, match="carries its timing"):
        EvalResult(verdict, Stage.DONE, "", timing=timing, roofline=roofline)


@pytest.mark.parametrize("verdict", sorted(UNSCORED))
@pytest.mark.parametrize("stage", list(Stage))
def test_our_own_faults_are_no_results(verdict: Verdict, stage: Stage) -> None:
    with pytest.raises(ValueError, match="not the outcome of an evaluation"):
        EvalResult(verdict, stage, "", timing=TIMING, roofline=ROOFLINE)


def test_a_result_is_checked_again_when_it_is_changed_and_never_in_place() -> None:
    result = EvalResult(Verdict.PASSED, Stage.DONE, "", timing=TIMING, roofline=ROOFLINE)
    assert replace(result, queue_wait_s=2.0).queue_wait_s == 2.0
    with pytest.raises(ValueError, match="does not fit stage"):
        replace(result, verdict=Verdict.TIMEOUT)
    with pytest.raises(FrozenInstanceError):
        result.feedback = "other"  # type: ignore[misc]


def test_phases_of_two_results_are_not_shared() -> None:
    first, second = (EvalResult(Verdict.TIMEOUT, Stage.COMPILE, "") for _ in range(2))
    assert first.phases is not second.phases


def size(new_ms: float, min_ms: float, **changes: object) -> EvalResult:
    timing = replace(
        TIMING, new_ms=new_ms, ci_low_ms=new_ms, ci_high_ms=new_ms, ref_ms=2 * new_ms, ref_eager_ms=3 * new_ms
    )
    roofline = Roofline(min_ms, "memory" if new_ms < 5 else "compute", 1e6, 0.0)
    made = EvalResult(Verdict.PASSED, Stage.DONE, "", timing=timing, roofline=roofline, max_abs_err=new_ms)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_one_size_is_the_result() -> None:
    result = size(1.0, 0.5)
    assert over_sizes([result]) is result


def test_over_sizes_times_and_terms_are_geometric_means() -> None:
    whole = over_sizes([size(1.0, 0.5), size(9.0, 8.0), size(3.0, 2.0)])
    assert whole.timing is not None
    assert whole.roofline is not None
    assert whole.timing.new_ms == pytest.approx(3.0)
    assert [whole.timing.ref_ms, whole.timing.ref_eager_ms] == pytest.approx([6.0, 9.0])
    assert (whole.timing.calls, whole.timing.repetitions, whole.timing.mode) == (24, 48, "graph")
    assert whole.roofline.min_ms == pytest.approx(2.0)
    assert whole.roofline.bound == "compute"
    assert [whole.roofline.bytes_moved, whole.roofline.flops] == pytest.approx([1e6, 0.0])
    assert whole.max_abs_err == 9.0
    assert (whole.own_share, whole.suspicious, whole.verdict) == (None, False, Verdict.PASSED)


def test_a_size_below_its_floor_does_not_pay_for_a_slow_one() -> None:
    """Noise may put a small size a few percent below its floor; the cap is for each size, not for the mean."""
    whole = over_sizes([size(1.0, 1.04), size(4.0, 1.0), size(1.0, 1.0)])
    assert whole.size_fractions == pytest.approx([1.04, 0.25, 1.0])
    assert whole.roofline_frac == pytest.approx(0.25 ** (1 / 3))
    assert size(4.0, 1.0).roofline_frac == 0.25
    assert size(1.0, 1.04).roofline_frac == 1.04


def test_without_a_time_there_is_no_fraction() -> None:
    assert EvalResult(Verdict.TIMEOUT, Stage.COMPILE, "").roofline_frac is None


def test_over_sizes_the_worst_is_kept() -> None:
    whole = over_sizes(
        [
            size(1.0, 0.5, own_share=0.25),
            size(1.0, 2.0, verdict=Verdict.ROOFLINE_VIOLATION, suspicious=True),
            size(1.0, 0.5, timing=replace(TIMING, mode="eager")),
        ]
    )
    assert (whole.verdict, whole.suspicious) == (Verdict.ROOFLINE_VIOLATION, True)
    assert whole.timing is not None
    assert whole.timing.mode == "eager"
    assert whole.own_share == pytest.approx(0.25 ** (1 / 3))


def test_a_size_that_failed_is_the_result() -> None:
    failed = EvalResult(Verdict.INCORRECT_VALUE, Stage.CORRECTNESS, "why")
    assert over_sizes([size(1.0, 0.5), failed]) is failed
