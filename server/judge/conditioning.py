"""Can values of a distribution be compared at all? What calibration asks of a reference's outputs. Trusted.

Knows tensors only: no task, no submission.
"""

from collections.abc import Sequence

import torch

SAMPLE_ELEMENTS = 1 << 22


class SpecialPlaces:
    """Where outputs may be NaN or infinite: only where they are so for the task's own inputs.

    A row that is masked as a whole is NaN whatever the scores are. A logarithm that is NaN because a distribution made
    its argument negative says nothing about a submission.
    """

    def __init__(self) -> None:
        """Nothing is known before the first outputs."""
        self._own: list[torch.Tensor | None] | None = None

    def admit(self, outputs: Sequence[torch.Tensor]) -> bool:
        """Whether these outputs can be expected of a submission. The first are those for the task's own inputs."""
        places = [_special(t) for t in outputs if t.is_floating_point()]
        if self._own is None:
            # Where most is NaN, right and wrong look alike; then no place may be.
            self._own = [None if p is None or 2 * int(p.sum()) > p.numel() else p for p in places]
        pairs = zip(places, self._own, strict=True)
        return all(p is None or (own is not None and torch.equal(p, own)) for p, own in pairs)


def as_double(inputs: Sequence[object]) -> list[object]:
    """The same arguments, floating-point tensors in double precision."""
    return [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]


def high_quantile(ratio: torch.Tensor) -> float:
    """What all but one element in ten thousand stay below, from a sample."""
    flat = ratio.reshape(-1)
    stride = max(1, flat.numel() // SAMPLE_ELEMENTS)
    sample = flat[::stride].float()
    return float(sample.kthvalue(max(1, int(0.9999 * sample.numel()))).values)


def _special(output: torch.Tensor) -> torch.Tensor | None:
    finite = torch.isfinite(output)
    return None if bool(finite.all()) else ~finite
