"""How much is run and timed on a kind of device. Values, and what follows from them for memory. Trusted."""

from dataclasses import dataclass

from .device import PIECE_BYTES
from .reference import Reference

LEAST_WHOLE_REPETITIONS = 4
TIMING_BUDGET_S = 6.0
EMPTY_REPETITIONS = 5


@dataclass(frozen=True, slots=True)
class Schedule:
    """How much is timed on a kind of device."""

    target_s: float
    """Least length of a repetition: the handoff then moves t by about a percent."""

    most_calls: int
    whole_repetitions: int
    short_repetitions: int
    """Of one call, and of half of the calls."""

    cold_factor: float
    """Inputs and outputs of all calls exceed the last cache by this factor, so that no call finds its inputs cached."""

    slack_bytes: int
    """What the allocator may waste per call."""

    least_calls: int
    negligible_handoff: float
    """Share of a repetition below which the handoff is subtracted without a look at noisy slopes."""

    from_least: bool
    """Whether the shortest repetition counts, not the median: a CPU is shared with everything else on the host."""

    usual_handoff_s: float
    times_empty: bool
    """Whether a repetition of no call costs the whole handoff; on a GPU it lacks the context switch."""


SCHEDULES = {
    "cuda": Schedule(
        target_s=0.010,
        most_calls=512,
        whole_repetitions=8,
        short_repetitions=4,
        cold_factor=2.5,
        slack_bytes=44 << 20,  # torch takes device memory in segments of 2 and 20 MiB
        least_calls=2,
        negligible_handoff=0.0,
        from_least=False,
        usual_handoff_s=3e-4,
        times_empty=False,
    ),
    "cpu": Schedule(
        target_s=0.005,
        most_calls=16,  # random numbers cost 5 to 30 ns each here
        whole_repetitions=8,
        short_repetitions=4,
        cold_factor=0.0,  # the last cache may be larger than any number of sets
        slack_bytes=1 << 16,
        least_calls=4,
        negligible_handoff=0.05,
        from_least=True,
        usual_handoff_s=6e-5,
        times_empty=True,
    ),
}

SHORTEST_CALL_S = 5e-7
ENOUGH = 0.6
"""Share of the wanted length of a repetition that is good enough."""


def most_bytes_per_call(reference: Reference, plan: Schedule) -> int:
    """Most memory that one call may take of the block for outputs: what computes as the reference does fits."""
    usual: int = 8 * (reference.output_bytes + reference.input_bytes)
    return max(usual, 2 * reference.allocated_bytes) + plan.slack_bytes


def most_shared_bytes(reference: Reference, plan: Schedule) -> int:
    """Most memory of the judge's that a candidate maps: for one call, for K calls, and again if K was too small."""
    per_call = most_bytes_per_call(reference, plan) + plan.slack_bytes
    return reference.state_bytes + (1 + 2 * plan.most_calls) * (reference.set_bytes + PIECE_BYTES + per_call)
