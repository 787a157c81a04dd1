"""From wall-clock samples to a time per call. Pure: tested on recorded samples.

A repetition of n calls takes W(n) = handoff + n * t on the judge's clock. The handoff (two messages and a context switch)
is not the submission's. It drops out of slopes between different n, and it can be subtracted if it is known. Either alone
could be gamed: a slope by being slow when few calls are asked for, a subtraction by having a shorter handoff than assumed.
So t is the largest of the slopes and of (W(K) - h) / K, with h the smallest handoff the reference ever had in the same
task on the same device, which a submission cannot influence.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


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

    def __post_init__(self) -> None:
        """Refuse samples no time can be made of.

        Raises:
            ValueError: A list is empty, a sample is not positive, or the counts do not rise.
        """
        if not (self.whole and self.single and 1 <= self.half_calls <= self.calls):
            raise ValueError("too few samples")
        if any(not 0 < w < float("inf") for w in (*self.whole, *self.half, *self.single)):
            raise ValueError("a sample is not a positive time")


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time per call in seconds, with its interval."""

    t_s: float
    ci_low_s: float
    ci_high_s: float
    handoff_s: float
    """Handoff these samples imply: the least whole repetition minus K calls."""


def slopes(samples: Samples) -> list[float]:
    """Seconds per further call, between the three repetition lengths that differ."""
    whole = statistics.median(samples.whole)
    points = [(1, statistics.median(samples.single))]
    if samples.half and 1 < samples.half_calls < samples.calls:
        points.append((samples.half_calls, statistics.median(samples.half)))
    return [(whole - wall) / (samples.calls - calls) for calls, wall in points if calls < samples.calls]


def estimate(samples: Samples, handoff_s: float | None = None) -> Estimate:
    """Time per call.

    Args:
        handoff_s: Smallest handoff known from a trusted run; None when these samples are that run.
    """
    calls = samples.calls
    candidates = [slope for slope in slopes(samples) if slope > 0]
    if handoff_s is None:
        # A trusted run: its slope is honest. One call per repetition leaves no slope; then nothing is subtracted.
        t = max(candidates, default=statistics.median(samples.whole) / calls)
        handoff = max(0.0, min(samples.whole) - calls * t)
    else:
        handoff = handoff_s
        whole = (statistics.median(samples.whole) - handoff) / calls
        t = max([whole, *candidates])
    t = max(t, 1e-9)
    low, high = median_interval(samples.whole)
    middle = statistics.median(samples.whole)
    implied = max(0.0, min(samples.whole) - calls * t)
    return Estimate(
        t_s=t,
        ci_low_s=max(1e-9, t - (middle - low) / calls),
        ci_high_s=t + (high - middle) / calls + max(0.0, implied - handoff) / calls,
        handoff_s=implied if handoff_s is None else handoff,
    )


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
