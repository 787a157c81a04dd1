"""What an evaluation did, step by step, for those who look at it afterwards. Trusted; never shown to a submission."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Repetition:
    """One run of prepared calls."""

    stage: str
    plan: str
    """`all`, `half`, `none` or `single`."""

    calls: int
    wall_s: float


@dataclass(slots=True)
class Trail:
    """One evaluation."""

    secret: str
    """Every hidden value of the evaluation follows from it; see `seeds`."""

    mode: str = ""
    calls: int = 0
    """K, calls prepared."""

    operators: tuple[str, ...] = ()
    """Operators of PyTorch and own kernels that one call ran, as the submission's process says."""

    own_share: float | None = None
    clocks: list[dict[str, float]] = field(default_factory=list)
    """Of the device, before and after each timing; MHz."""

    repetitions: list[Repetition] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """For a packet or a file."""
        return asdict(self)
