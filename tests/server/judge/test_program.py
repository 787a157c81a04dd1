"""The time of a reference on a busy host: it is measured again, and the least handoff known is what counts."""

from typing import cast

import pytest

from kernel_env.terms import Verdict
from server.judge.device import CpuDevice
from server.judge.evaluation import Evaluation, Measured, Phases
from server.judge.program import BASELINE_ATTEMPTS, BUSY_FACTOR, Baseline, Judge
from server.judge.roofline import Floor
from server.judge.schedule import SCHEDULES
from server.judge.timing import SHORTEST_S, Estimate

USUAL_S = SCHEDULES["cpu"].usual_handoff_s
BUSY_S = 2 * BUSY_FACTOR * USUAL_S


def measured(handoff_s: float, t_s: float = 1e-3, mode: str = "eager") -> Measured:
    """Four calls in a repetition."""

    def estimate_with(other_s: float | None) -> Estimate:
        subtracted_s = handoff_s if other_s is None else other_s
        found_s = t_s + (handoff_s - subtracted_s) / 4
        return Estimate(found_s, found_s, found_s, subtracted_s)

    return Measured(mode, estimate_with(None), 4, 16, 0.0, estimate_with)


class Host:
    """Times the reference; so busy, one time after the other."""

    def __init__(self, *handoffs_s: float) -> None:
        self.handoffs_s = list(handoffs_s)

    def time(self, handoff_s: float | None) -> Measured:
        assert handoff_s is None
        return measured(self.handoffs_s.pop(0))


@pytest.fixture
def judge() -> Judge:
    made = Judge.__new__(Judge)
    made._device, made._baselines = CpuDevice(1), {}
    return made


@pytest.mark.parametrize(
    ("handoffs_s", "taken_s", "left"),
    [
        ((USUAL_S, 0.0), USUAL_S, 1),
        ((BUSY_S, USUAL_S, 0.0), USUAL_S, 1),
        ((BUSY_S, 3 * BUSY_S, 2 * BUSY_S, 0.0), BUSY_S, 1),
    ],
)
def test_a_reference_timed_on_a_busy_host_is_timed_again(
    judge: Judge, handoffs_s: tuple[float, ...], taken_s: float, left: int
) -> None:
    host = Host(*handoffs_s)
    assert judge._undisturbed(cast(Evaluation, host)).estimate.handoff_s == taken_s
    assert len(host.handoffs_s) == left
    assert len(handoffs_s) - left <= BASELINE_ATTEMPTS


def test_a_quiet_moment_of_another_task_is_enough(judge: Judge) -> None:
    judge._baselines = {"quiet": Baseline(None, measured(USUAL_S).estimate)}
    host = Host(BUSY_S, 0.0)
    found = judge._undisturbed(cast(Evaluation, host)).estimate
    assert len(host.handoffs_s) == 1
    assert found.handoff_s == USUAL_S
    assert found.t_s == pytest.approx(1e-3 + (BUSY_S - USUAL_S) / 4)  # four calls a repetition


def test_a_handoff_is_never_larger_than_that_of_another_task(judge: Judge) -> None:
    """Subtracting what one busy moment added would pay every submission to the task."""
    busy, quiet = (Baseline(None, measured(handoff_s).estimate) for handoff_s in (BUSY_S, USUAL_S))
    judge._baselines = {"busy": busy}
    assert judge._handoff_s(busy, "eager") == BUSY_S
    judge._baselines = {"busy": busy, "quiet": quiet}
    assert judge._handoff_s(busy, "eager") == USUAL_S


@pytest.mark.parametrize("floor_validated", [False, True])
def test_a_time_of_nothing_is_no_time(judge: Judge, monkeypatch: pytest.MonkeyPatch, floor_validated: bool) -> None:
    """Whatever is known of the floor: noise took more than there was, and the speed term would be paid in full."""
    monkeypatch.setattr(judge, "_floor", lambda _: Floor(1e-6, "launch", 0.0, 0.0))
    request = {"floor_validated": floor_validated}
    baseline = Baseline(None, measured(USUAL_S).estimate)
    answer = judge._passed(request, measured(USUAL_S, SHORTEST_S), baseline, Phases())
    assert (answer["verdict"], answer["suspicious"]) == (Verdict.ROOFLINE_VIOLATION, True)
    assert judge._passed(request, measured(USUAL_S, 2e-6), baseline, Phases())["verdict"] == Verdict.PASSED
    untimed = measured(0.0, SHORTEST_S, "interpreted")
    assert judge._passed(request, untimed, baseline, Phases())["verdict"] == Verdict.PASSED
