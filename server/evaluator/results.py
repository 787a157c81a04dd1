"""What goes into an evaluation and what comes out. Values only: no process, no torch."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import geometric_mean

from kernel_env.terms import Language, Precision, Stage, Verdict


@dataclass(frozen=True, slots=True)
class Submission:
    """Code as it will be run: fences, byte order mark and carriage returns already removed."""

    code: str
    language: Language

    @property
    def sha256(self) -> str:
        """Hexadecimal digest of the code. Lone surrogates are kept distinct, never an error."""
        return hashlib.sha256(self.code.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Timing:
    """Times per call in milliseconds, measured by the judge."""

    mode: str
    """`graph`, `eager` or `interpreted`."""

    new_ms: float
    ci_low_ms: float
    ci_high_ms: float
    calls: int
    """Calls per repetition, each on inputs of its own."""

    repetitions: int
    ref_ms: float
    """Reference in the same mode as the submission."""

    ref_eager_ms: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """Least time of the task on this device."""

    min_ms: float
    bound: str
    """`memory`, `compute` or `launch`."""

    bytes_moved: float
    flops: float


@dataclass(frozen=True, slots=True)
class EvalResult:
    """Outcome of one evaluation that took place. Our own faults are exceptions, never results."""

    verdict: Verdict
    stage: Stage
    feedback: str
    """For the agent: bounded, without seed, host path or reference value."""

    max_abs_err: float | None = None
    timing: Timing | None = None
    roofline: Roofline | None = None
    precision: Precision | None = None
    device: str = "cpu"
    gpu_id: str = "cpu"
    isolation: str = "weak"
    queue_wait_s: float = 0.0
    eval_s: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    suspicious: bool = False
    own_share: float | None = None
    """Share of the work that the submission's own kernels do, where it was measured."""

    size_fractions: tuple[float, ...] = ()
    """`t_min / t` of each size, where a task was judged at several."""

    def __post_init__(self) -> None:
        """Refuse impossible results.

        Raises:
            ValueError: Correct without having reached the end, or an unscored verdict.
        """
        if self.verdict in {Verdict.BUSY, Verdict.INFRA_ERROR}:
            raise ValueError(f"{self.verdict} is not the outcome of an evaluation")
        if self.is_correct != (self.stage is Stage.DONE):
            raise ValueError(f"verdict {self.verdict} does not fit stage {self.stage}")
        if self.is_correct and (self.timing is None or self.roofline is None):
            raise ValueError("a correct result carries its timing and its roofline")

    @property
    def is_correct(self) -> bool:
        """Whether every output was right. `roofline_violation` is correct, and pays no speed term."""
        return self.verdict in {Verdict.PASSED, Verdict.ROOFLINE_VIOLATION}

    @property
    def roofline_frac(self) -> float | None:
        """`t_min / t`; over several sizes the geometric mean of what each reached, counted as 1 at most.

        None without a time. What a size gains below its floor, by noise or by trick, must not pay for another one.
        """
        if self.size_fractions:
            return _mean(min(fraction, 1.0) for fraction in self.size_fractions)
        if self.timing is None or self.roofline is None:
            return None
        return self.roofline.min_ms / self.timing.new_ms if self.timing.new_ms > 0 else None


def over_sizes(results: Sequence[EvalResult]) -> EvalResult:
    """One result for a task that was judged at several sizes.

    Correct only if all are, else the last one. Times, the roofline's terms and the own share are geometric means, so
    that every size weighs the same; the fraction of the roofline is the mean of the sizes' fractions, not the fraction
    of the mean times.

    Args:
        results: In the order judged; only the last one may have failed.
    """
    last = results[-1]
    if len(results) == 1 or not last.is_correct:
        return last
    timings = [result.timing for result in results if result.timing is not None]
    rooflines = [result.roofline for result in results if result.roofline is not None]
    errors = [result.max_abs_err for result in results if result.max_abs_err is not None]
    shares = [result.own_share for result in results]
    modes = {timing.mode for timing in timings}
    is_violation = any(result.verdict is Verdict.ROOFLINE_VIOLATION for result in results)
    longest = max(zip(timings, rooflines, strict=True), key=lambda pair: pair[0].new_ms)[1]
    return replace(
        last,
        verdict=Verdict.ROOFLINE_VIOLATION if is_violation else Verdict.PASSED,
        max_abs_err=max(errors, default=None),
        timing=Timing(
            mode=modes.pop() if len(modes) == 1 else "eager",
            new_ms=_mean(timing.new_ms for timing in timings),
            ci_low_ms=_mean(timing.ci_low_ms for timing in timings),
            ci_high_ms=_mean(timing.ci_high_ms for timing in timings),
            calls=sum(timing.calls for timing in timings),
            repetitions=sum(timing.repetitions for timing in timings),
            ref_ms=_mean(timing.ref_ms for timing in timings),
            ref_eager_ms=_mean(timing.ref_eager_ms for timing in timings),
        ),
        roofline=Roofline(
            min_ms=_mean(roofline.min_ms for roofline in rooflines),
            bound=longest.bound,
            bytes_moved=_mean(roofline.bytes_moved for roofline in rooflines),
            flops=_mean(roofline.flops for roofline in rooflines),
        ),
        suspicious=any(result.suspicious for result in results),
        size_fractions=tuple(r.min_ms / t.new_ms for t, r in zip(timings, rooflines, strict=True)),
        own_share=None if all(share is None for share in shares) else _mean(1.0 if s is None else s for s in shares),
    )


def _mean(values: Iterable[float]) -> float:
    """Geometric mean; 0 if one of them is."""
    found = list(values)
    return 0.0 if min(found) <= 0 else geometric_mean(found)
