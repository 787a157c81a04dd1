"""From wall-clock samples to a time per call. Pure: tested on recorded samples.

A repetition of n calls takes W(n) = handoff + n * t on the judge's clock. The handoff (two messages and a context
switch) is not the submission's. It drops out of slopes between different n, and it can be subtracted if it is known.
Either alone could be gamed: a slope by being slow when few calls are asked for, a subtraction by having a shorter
handoff than assumed. So t is the larger of the slope and of (W(K) - h) / K, with h the handoff the reference had in
the same task on the same device, which a submission cannot influence. Where clocks are noisy and h is below a stated
share of K * t, the slope could only add noise: h then bounds what a shorter handoff can gain, and the subtraction
alone is used.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

MISSED_SHARE = 0.05
"""How often an interval may miss what it is for."""

LONE_FACTOR = 1.25
LONE_SLACK_S = 5e-4
"""By how much a captured call that runs alone may take longer than one of many: a handoff on a busy host, and noise.

Beyond that the calls of a repetition were not made one after another. A module that replaces what launches the graphs
could run them side by side, which the outputs do not show.
"""

SHORTEST_S = 1e-9
"""A time is never zero or negative, whatever the noise."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Wall seconds of repetitions, by how many calls they ran."""

    calls: int
    """K."""

    half_calls: int
    whole: tuple[float, ...]
    """Repetitions of all K calls."""

    half: tuple[float, ...]
    """Repetitions of the first `half_calls` calls."""

    single: tuple[float, ...]
    """Repetitions of one call."""

    empty: tuple[float, ...] = ()
    """Repetitions of no call, where that costs the whole handoff."""

    def __post_init__(self) -> None:
        """Refuse samples no time can be made of.

        Raises:
            ValueError: A list is empty, a sample is not positive, or the counts do not rise.
        """
        if not (self.whole and self.single and 1 <= self.half_calls <= self.calls):
            raise ValueError("too few samples")
        if any(not 0 < w < float("inf") for w in (*self.whole, *self.half, *self.single, *self.empty)):
            raise ValueError("a sample is not a positive time")


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time per call in seconds, with its interval."""

    t_s: float
    ci_low_s: float
    ci_high_s: float
    handoff_s: float
    """Handoff that was subtracted."""

    @property
    def is_time(self) -> bool:
        """Whether more than noise is left; what took no time was not timed."""
        return self.t_s > SHORTEST_S


def slope(samples: Samples) -> float | None:
    """Seconds per further call.

    Least squares over the medians of the three lengths. None if there is only one length.
    """
    points = [(1, statistics.median(samples.single)), (samples.calls, statistics.median(samples.whole))]
    if samples.half:
        points.append((samples.half_calls, statistics.median(samples.half)))
    if samples.calls == 1:
        return None
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def estimate(
    samples: Samples,
    handoff_s: float | None = None,
    negligible: float = 0.0,
    *,
    from_least: bool = False,
    alone: bool = False,
) -> Estimate:
    """Time per call.

    Args:
        handoff_s: Smallest handoff known from a trusted run; None when these samples are that run.
        negligible: Share of K * t below which the handoff may be subtracted without a look at the slopes.
        from_least: Take the shortest repetition instead of the median. Every repetition is verified, so the shortest is
            a true time; on a host shared with other work the median measures the others.
        alone: Count no call as shorter than the shortest that ran alone. For loops of calls, which a module could
            answer all at once, without any trick.
    """
    calls = samples.calls
    middle = min(samples.whole) if from_least else statistics.median(samples.whole)
    rise = slope(samples)
    if handoff_s is None:
        handoff_s = _handoff(samples, rise)
    t = (middle - handoff_s) / calls
    if rise is not None and handoff_s > negligible * max(calls * t, 0.0):
        t = max(t, rise)
    lone = min(samples.single) - handoff_s
    if alone:
        t = max(t, lone)
    elif lone - LONE_SLACK_S > LONE_FACTOR * t:
        t = lone - LONE_SLACK_S
    t = max(t, SHORTEST_S)
    low, high = median_interval(samples.whole)
    low = min(low, middle)  # the shortest repetition may lie below the interval of the median
    return Estimate(
        t_s=t,
        ci_low_s=max(SHORTEST_S, t - (middle - low) / calls),
        ci_high_s=t + (high - middle) / calls,
        handoff_s=handoff_s,
    )


def _handoff(samples: Samples, rise: float | None) -> float:
    """Handoff of a trusted run: measured by empty repetitions, else what its own honest slope leaves over."""
    if samples.empty:
        return min(samples.empty)
    return 0.0 if rise is None else max(0.0, statistics.median(samples.whole) - samples.calls * rise)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Order statistics that hold the median with at least 95 % (binomial), the extremes when there are fewer than six.

    Source: Conover, Practical Nonparametric Statistics, 1999, section 3.2.
    """
    ordered = sorted(values)
    n = len(ordered)
    if n < 6:
        return ordered[0], ordered[-1]
    # The median lies below ordered[low] in `outside` of 2**n cases, and above its mirror in as many.
    low, outside = 0, 1
    while 2 * (outside + comb(n, low + 1)) <= MISSED_SHARE * 2**n:
        low += 1
        outside += comb(n, low)
    return ordered[low], ordered[n - 1 - low]
