"""What is wrong with the calls of one repetition, asked of the device once for all of them. Trusted.

On a GPU every question takes a round trip, and every output is verified. So kernels add what they find to one small
tensor, which is read at the end. Where no kernel applies, `compare` answers at once.
"""

from collections.abc import Sequence

import torch

from . import fused
from .compare import Tolerance, block_elements, compare, is_good_enough, same_bits


class Findings:
    """Collects, then says which calls are wrong."""

    def __init__(self, device: torch.device, tolerance: Tolerance, calls: int, outputs: int) -> None:
        """Room for `calls` calls with so many outputs each."""
        self._tolerance, self._outputs = tolerance, outputs
        self._changed = torch.zeros(calls, dtype=torch.int64, device=device)
        self._worst = torch.zeros(calls * outputs, 2, device=device)
        self._mismatched = torch.zeros(calls * outputs, dtype=torch.int64, device=device)
        self._elements: dict[int, int] = {}
        self._known_wrong: set[int] = set()
        self.max_abs_err = 0.0

    def inputs(self, place: int, shared: Sequence[torch.Tensor], fresh: Sequence[torch.Tensor]) -> None:
        """Look whether the inputs of the call at `place` still hold what was written."""
        for left, right in zip(shared, fresh, strict=True):
            if fused.can_count_changes(left, right):
                fused.count_changes(left, right, self._changed[place : place + 1])
            elif not same_bits(left, right):
                self._known_wrong.add(place)

    def output(self, place: int, number: int, got: torch.Tensor, want: torch.Tensor) -> None:
        """Compare one output, already known to have the shape and type of `want`."""
        block = block_elements(tuple(want.shape))
        if fused.can_compare(got, want, block):
            row = place * self._outputs + number
            self._elements[row] = want.numel()
            rtol, stol = (self._tolerance.factor * part for part in (self._tolerance.rtol, self._tolerance.stol))
            fused.row_errors(got, want, block, rtol, stol, self._worst[row], self._mismatched[row : row + 1])
            return
        result = compare(got, want, self._tolerance)
        self.max_abs_err = max(self.max_abs_err, result.max_abs_err)
        if not result.is_right:
            self._known_wrong.add(place)

    def wrong(self) -> list[int]:
        """Places of the calls with changed inputs or a wrong output, in order. Reads the device."""
        wrong = set(self._known_wrong)
        if self._changed.is_cuda:
            changed, worst, mismatched = self._changed.tolist(), self._worst.tolist(), self._mismatched.tolist()
            wrong |= {place for place, count in enumerate(changed) if count}
            for row, elements in self._elements.items():
                ratio, error = worst[row]
                self.max_abs_err = max(self.max_abs_err, error)
                if not is_good_enough(ratio, mismatched[row], elements):
                    wrong.add(row // self._outputs)
        return sorted(wrong)
