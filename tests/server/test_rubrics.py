"""The reward: exactly 0 behind a closed gate, None when nothing was judged, else 0.3 to 3.0 and monotone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_env.models import UNSCORED, KernelAction, KernelObservation, Stage, Verdict
from server.rubrics import kernel_rubric

ACTION = KernelAction(code="")
CORRECT = {Verdict.PASSED, Verdict.ROOFLINE_VIOLATION}
FAILING = sorted(set(Verdict) - CORRECT - UNSCORED)


def reward(
    verdict: Verdict | None,
    *,
    stage: Stage | None = Stage.DONE,
    correct: bool | None = True,
    fraction: float | None = 0.5,
    timing: str = "graph",
) -> float | None:
    observation = KernelObservation(
        verdict=verdict, stage=stage, correct=correct, roofline_frac=fraction, timing=timing, rubric_scores={}
    )
    return kernel_rubric()(ACTION, observation)  # type: ignore[no-any-return]


@pytest.mark.parametrize("verdict", FAILING)
@pytest.mark.parametrize("stage", list(Stage))
@pytest.mark.parametrize("correct", [True, False, None])
def test_every_failing_verdict_earns_exactly_zero(verdict: Verdict, stage: Stage, correct: bool | None) -> None:
    assert reward(verdict, stage=stage, correct=correct, fraction=1.0) == 0.0


@pytest.mark.parametrize("verdict", [*sorted(UNSCORED), None])
def test_what_was_not_judged_earns_none(verdict: Verdict | None) -> None:
    assert reward(verdict) is None


@pytest.mark.parametrize("verdict", sorted(CORRECT))
@pytest.mark.parametrize(
    ("stage", "correct"), [(Stage.DONE, False), (Stage.DONE, None), (Stage.STATIC, True), (None, True)]
)
def test_a_passing_verdict_without_its_evidence_earns_zero(
    verdict: Verdict, stage: Stage | None, correct: bool | None
) -> None:
    assert reward(verdict, stage=stage, correct=correct) == 0.0


def test_roofline_violation_pays_no_speed() -> None:
    assert reward(Verdict.ROOFLINE_VIOLATION, fraction=2.0) == pytest.approx(0.3)


def test_interpreted_timing_pays_no_speed() -> None:
    assert reward(Verdict.PASSED, fraction=0.9, timing="interpreted") == pytest.approx(0.3)


@pytest.mark.parametrize("fraction", [None, math.nan, math.inf, -1.0, 0.0])
def test_a_fraction_that_means_nothing_pays_no_speed(fraction: float | None) -> None:
    assert reward(Verdict.PASSED, fraction=fraction) == pytest.approx(0.3)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_reward_of_a_correct_kernel_is_between_its_bounds(fraction: float) -> None:
    value = reward(Verdict.PASSED, fraction=fraction)
    assert value is not None
    assert 0.3 <= value <= 3.0 + 1e-12


@given(st.floats(0, 2), st.floats(0, 2))
def test_a_faster_kernel_never_earns_less(one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    less, more = reward(Verdict.PASSED, fraction=slow), reward(Verdict.PASSED, fraction=fast)
    assert less is not None
    assert more is not None
    assert less <= more


def test_scores_name_every_node_and_hold_nothing_of_an_earlier_step() -> None:
    rubric = kernel_rubric()
    good = KernelObservation(
        verdict=Verdict.PASSED, stage=Stage.DONE, correct=True, roofline_frac=0.5, timing="graph", rubric_scores={}
    )
    assert rubric(ACTION, good) == pytest.approx(0.3 + 2.7 * 0.5)
    assert rubric.scores() == {"static": 1.0, "compile": 1.0, "correct": 1.0, "speed": 0.5}

    bad = KernelObservation(verdict=Verdict.COMPILE_ERROR, stage=Stage.COMPILE, correct=False)
    assert rubric(ACTION, bad) == 0.0
    assert rubric.scores() == {"static": 1.0, "compile": 0.0, "correct": 0.0, "speed": 0.0}
    assert rubric.speed.last_score is None

    unscored = KernelObservation(verdict=Verdict.INFRA_ERROR)
    assert rubric(ACTION, unscored) is None
    assert rubric.scores() == {}
    assert all(node.last_score is None for node in rubric.rubrics())


@pytest.mark.parametrize(("share", "reward"), [(None, 1.65), (1.0, 1.65), (0.5, 0.975), (0.0, 0.3)])
def test_the_speed_term_is_multiplied_by_the_own_kernels_share(share: float | None, reward: float) -> None:
    """A share that is not known is no fault of the submission's."""
    seen = KernelObservation(
        verdict=Verdict.PASSED, stage=Stage.DONE, correct=True, roofline_frac=0.5, timing="graph", own_share=share
    )
    assert kernel_rubric()(None, seen) == pytest.approx(reward)
