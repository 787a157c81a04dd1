"""What goes into an evaluation and what comes out. Values only: no process, no torch."""

import hashlib
from dataclasses import dataclass, field

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
