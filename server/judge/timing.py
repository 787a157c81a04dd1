"""From wall-clock samples to a time per call. Pure: tested on recorded samples.

A repetition of n calls takes W(n) = handoff + n * t on the judge's clock. The handoff (two messages and a context switch)
is not the submission's. It drops out of slopes between different n, and it can be subtracted if it is known. Either alone
could be gamed: a slope by being slow when few calls are asked for, a subtraction by having a shorter handoff than assumed.
So t is the largest of the slopes and of (W(K) - h) / K, with h the smallest handoff the reference ever had in the same
task on the same device, which a submission cannot influence. Where clocks are noisy and h is below a stated share of K * t,
the slopes could only add noise: h then bounds what a shorter handoff can gain, and the subtraction alone is used.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


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


def slopes(samples: Samples) -> list[float]:
    """Seconds per further call, between the three repetition lengths that differ."""
    whole = statistics.median(samples.whole)
    points = [(1, statistics.median(samples.single))]
    if samples.half and 1 < samples.half_calls < samples.calls:
        points.append((samples.half_calls, statistics.median(samples.half)))
    return [(whole - wall) / (samples.calls - calls) for calls, wall in points if calls < samples.calls]


def estimate(
    samples: Samples, handoff_s: float | None = None, negligible: float = 0.0, *, from_least: bool = False
) -> Estimate:
    """Time per call.

    Args:
        handoff_s: Smallest handoff known from a trusted run; None when these samples are that run.
        negligible: Share of K * t below which the handoff may be subtracted without a look at the slopes.
        from_least: Take the shortest repetition instead of the median. Every repetition is verified, so the shortest is
            a true time; on a host shared with other work the median measures the others.
    """
    calls = samples.calls
    middle = min(samples.whole) if from_least else statistics.median(samples.whole)
    rising = [slope for slope in slopes(samples) if slope > 0]
    if handoff_s is None:
        handoff_s = _handoff(samples, rising)
    t = (middle - handoff_s) / calls
    if handoff_s > negligible * max(calls * t, 0.0):
        t = max([t, *rising])
    t = max(t, SHORTEST_S)
    low, high = median_interval(samples.whole)
    # What this run's own handoff exceeds the subtracted one by is time nobody can attribute.
    unknown = max(0.0, min(samples.whole) - calls * t - handoff_s) / calls
    return Estimate(
        t_s=t,
        ci_low_s=max(SHORTEST_S, t - (middle - low) / calls),
        ci_high_s=t + (high - middle) / calls + unknown,
        handoff_s=handoff_s,
    )


def _handoff(samples: Samples, rising: Sequence[float]) -> float:
    """Handoff of a trusted run: measured by empty repetitions, else what its own honest slope leaves over."""
    if samples.empty:
        return min(samples.empty)
    return max(0.0, min(samples.whole) - samples.calls * max(rising)) if rising else 0.0


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Order statistics that hold the median with at least 95 % (binomial), the extremes when there are fewer than six.

    Source: Conover, Practical Nonparametric Statistics, 1999, section 3.2.
    """
    ordered = sorted(values)
    n = len(ordered)
    if n < 6:
        return ordered[0], ordered[-1]
    half_width = 0.98 * n**0.5  # 1.96 standard deviations of Binomial(n, 1/2)
    low = max(0, int(n / 2 - half_width))
    return ordered[low], ordered[n - 1 - low]
