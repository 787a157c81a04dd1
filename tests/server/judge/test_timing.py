"""From recorded samples to a time per call. The cheats here never make it shorter than the true time less h / K."""

from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.judge.timing import LONE_SLACK_S, Estimate, Samples, estimate, median_interval

CALLS, HALF = 200, 100
T_S, HANDOFF_S = 36.6e-6, 350e-6


def recorded(
    t_s: float = T_S,
    handoff_s: float = HANDOFF_S,
    *,
    single_s: float | None = None,
    half_s: float | None = None,
    empty: bool = False,
) -> Samples:
    """Repetitions without noise, some of them replaced."""
    single = handoff_s + t_s if single_s is None else single_s
    half = handoff_s + HALF * t_s if half_s is None else half_s
    return Samples(
        CALLS,
        HALF,
        whole=(handoff_s + CALLS * t_s,) * 10,
        half=(half,) * 3,
        single=(single,) * 3,
        empty=(handoff_s,) * 5 if empty else (),
    )


@pytest.mark.parametrize("from_least", [False, True])
@pytest.mark.parametrize("handoff_s", [None, HANDOFF_S])
@pytest.mark.parametrize("negligible", [0.0, 0.05])
def test_noiseless_samples_give_the_time_that_made_them(
    handoff_s: float | None, negligible: float, from_least: bool
) -> None:
    result = estimate(recorded(), handoff_s, negligible, from_least=from_least)
    assert result.t_s == pytest.approx(T_S, rel=1e-9)
    assert result.handoff_s == pytest.approx(HANDOFF_S, rel=1e-6)
    assert result.ci_low_s == pytest.approx(T_S)
    assert result.ci_high_s == pytest.approx(T_S)


def test_recorded_repetitions_of_a_gpu_give_the_time_its_events_gave() -> None:
    """Two-call repetitions of a 3.36 ms kernel with handoffs between 0.28 and 0.48 ms."""
    whole = (7.06e-3, 7.02e-3, 7.10e-3, 7.04e-3, 14.1e-3, 7.03e-3, 7.08e-3, 7.05e-3, 7.02e-3, 7.07e-3)
    samples = Samples(2, 1, whole, (3.71e-3, 3.69e-3), (3.70e-3, 3.68e-3, 3.72e-3))
    result = estimate(samples, 0.33e-3)
    assert result.t_s == pytest.approx(3.36e-3, rel=0.01)
    assert result.ci_low_s <= result.t_s <= result.ci_high_s < 3.45e-3


def test_calls_that_ran_side_by_side_take_what_one_alone_takes() -> None:
    """Four captured calls of 5 ms each, launched as one, take 6 ms together."""
    together = Samples(4, 2, (6.35e-3,) * 8, (5.85e-3,) * 4, (5.35e-3,) * 4)
    assert estimate(together, HANDOFF_S).t_s == pytest.approx(5.0e-3 - LONE_SLACK_S)


@pytest.mark.parametrize("t_s", [3e-6, 50e-6, 500e-6, 3e-3])
def test_waking_the_device_for_a_call_alone_is_not_its_time(t_s: float) -> None:
    calls = max(2, round(0.01 / t_s))
    whole, half = HANDOFF_S + calls * t_s, HANDOFF_S + calls // 2 * t_s
    samples = Samples(calls, calls // 2, (whole,) * 8, (half,) * 4, (HANDOFF_S + t_s + 0.9 * LONE_SLACK_S,) * 4)
    assert estimate(samples, HANDOFF_S).t_s == pytest.approx(t_s, rel=0.02)


def test_empty_repetitions_measure_the_handoff_where_they_exist() -> None:
    assert estimate(recorded(empty=True), None).handoff_s == HANDOFF_S


def test_one_call_leaves_only_the_subtraction() -> None:
    samples = Samples(1, 1, (1.0e-3,) * 4, (), (1.0e-3,))
    assert estimate(samples, 1.0e-4).t_s == pytest.approx(0.9e-3)
    assert estimate(samples, None).handoff_s == 0.0


@pytest.mark.parametrize("negligible", [0.0, 0.05])
@pytest.mark.parametrize(
    ("single_s", "half_s"),
    [
        (1e-6, None),  # fast when one call is asked for
        (HANDOFF_S + 100 * T_S, None),  # slow then
        (None, 1e-6),
        (None, HANDOFF_S + CALLS * T_S),
        (HANDOFF_S + 100 * T_S, HANDOFF_S + 2 * CALLS * T_S),  # a falling slope
        (1e-6, 1e-6),
    ],
)
def test_odd_short_repetitions_never_shorten_the_time(
    single_s: float | None, half_s: float | None, negligible: float
) -> None:
    samples = recorded(single_s=single_s, half_s=half_s)
    result = estimate(samples, HANDOFF_S, negligible)
    assert result.t_s >= T_S * (1 - 1e-9)


@pytest.mark.parametrize(("negligible", "from_least"), [(0.0, False), (0.05, False), (0.05, True)])
@pytest.mark.parametrize("own_handoff_s", [1e-9, 0.5 * HANDOFF_S, HANDOFF_S])
def test_a_shorter_handoff_gains_at_most_its_share_of_one_call(
    own_handoff_s: float, negligible: float, from_least: bool
) -> None:
    samples = recorded(handoff_s=own_handoff_s)
    result = estimate(samples, HANDOFF_S, negligible, from_least=from_least)
    assert T_S - HANDOFF_S / CALLS <= result.t_s <= T_S * (1 + 1e-9)


def test_a_shorter_handoff_gains_nothing_where_the_slope_counts() -> None:
    assert estimate(recorded(handoff_s=1e-9), HANDOFF_S, 0.0).t_s == pytest.approx(T_S, rel=1e-6)


def test_a_longer_handoff_costs_at_most_its_share_of_one_call() -> None:
    assert estimate(recorded(handoff_s=2 * HANDOFF_S), HANDOFF_S).t_s == pytest.approx(T_S + HANDOFF_S / CALLS)


def test_a_time_is_positive_even_when_the_handoff_is_longer_than_the_repetition() -> None:
    samples = Samples(4, 2, (1e-6,) * 6, (1e-6,), (1e-6,))
    result = estimate(samples, 1.0)
    assert 0 < result.ci_low_s <= result.t_s <= result.ci_high_s


def test_the_shortest_repetition_counts_on_a_shared_host() -> None:
    whole = tuple(HANDOFF_S + CALLS * T_S * (1 + noise) for noise in (0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0))
    samples = Samples(CALLS, HALF, whole, (), (HANDOFF_S + T_S,))
    assert estimate(samples, HANDOFF_S, 0.05, from_least=True).t_s == pytest.approx(T_S)
    assert estimate(samples, HANDOFF_S, 0.05).t_s > 1.5 * T_S


def test_one_repetition_in_ten_may_double_without_moving_the_median() -> None:
    whole = (*(HANDOFF_S + CALLS * T_S,) * 9, 2 * (HANDOFF_S + CALLS * T_S))
    samples = Samples(CALLS, HALF, whole, (HANDOFF_S + HALF * T_S,) * 3, (HANDOFF_S + T_S,) * 3)
    assert estimate(samples, HANDOFF_S).t_s == pytest.approx(T_S)


TIMES = st.floats(1e-6, 1.0)


@settings(max_examples=200, deadline=None)
@given(
    calls=st.integers(1, 512),
    whole=st.lists(TIMES, min_size=1, max_size=12),
    half=st.lists(TIMES, max_size=3),
    single=st.lists(TIMES, min_size=1, max_size=3),
    handoff_s=st.one_of(st.none(), st.floats(0.0, 1.0)),
    negligible=st.sampled_from([0.0, 0.05]),
    from_least=st.booleans(),
)
def test_any_samples_give_a_time_within_its_interval_and_not_below_the_subtraction(
    calls: int,
    whole: list[float],
    half: list[float],
    single: list[float],
    handoff_s: float | None,
    negligible: float,
    from_least: bool,
) -> None:
    samples = Samples(calls, max(1, calls // 2), tuple(whole), tuple(half), tuple(single))
    result: Estimate = estimate(samples, handoff_s, negligible, from_least=from_least)
    assert 0 < result.ci_low_s <= result.t_s <= result.ci_high_s < float("inf")
    assert result.handoff_s >= 0
    assert result.t_s >= (min(whole) - result.handoff_s) / calls


@pytest.mark.parametrize("n", range(6, 40))
def test_the_interval_of_the_median_is_the_narrowest_that_misses_one_in_twenty(n: int) -> None:
    """Exact: the number of values below the median of a continuous distribution is Binomial(n, 1/2)."""
    low, high = median_interval([float(i) for i in range(n)])
    assert low + high == n - 1
    missed = 2 * sum(comb(n, i) for i in range(int(low) + 1)) / 2**n
    missed_if_narrower = 2 * sum(comb(n, i) for i in range(int(low) + 2)) / 2**n
    assert missed <= 0.05 < missed_if_narrower


def test_few_values_give_their_extremes() -> None:
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert median_interval([5.0]) == (5.0, 5.0)
    assert median_interval([5.0, 4.0, 3.0, 2.0, 1.0]) == (1.0, 5.0)


@pytest.mark.parametrize(
    ("calls", "half_calls", "whole", "half", "single", "empty"),
    [
        (2, 1, (), (), (1.0,), ()),
        (2, 1, (1.0,), (), (), ()),
        (2, 3, (1.0,), (), (1.0,), ()),
        (2, 0, (1.0,), (), (1.0,), ()),
        (0, 0, (1.0,), (), (1.0,), ()),
        (2, 1, (0.0,), (), (1.0,), ()),
        (2, 1, (1.0,), (-1.0,), (1.0,), ()),
        (2, 1, (1.0, float("nan")), (), (1.0,), ()),
        (2, 1, (1.0,), (), (float("inf"),), ()),
        (2, 1, (1.0,), (), (1.0,), (0.0,)),
    ],
)
def test_samples_no_time_can_be_made_of_are_refused(
    calls: int,
    half_calls: int,
    whole: tuple[float, ...],
    half: tuple[float, ...],
    single: tuple[float, ...],
    empty: tuple[float, ...],
) -> None:
    with pytest.raises(ValueError, match="sample"):
        Samples(calls, half_calls, whole, half, single, empty)
