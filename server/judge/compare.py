"""Are these values right? Pure functions on tensors of any device; knows no task and no submission.

An element is right when `|y - r| <= factor * (rtol * |r| + stol * scale)`. The scale is taken per block of neighbouring
elements (a row, or several short rows), as the squared mean of square roots of magnitudes: spikes hardly move it, so
they cannot buy tolerance for their neighbours. A tiny share of elements may miss the bound, none by ten times.
"""

from dataclasses import dataclass

import torch

from kernel_env.terms import Precision

CHUNK_ELEMENTS = 1 << 25
"""Elements compared at once: bounds the temporaries to about 1 GiB."""

MIN_BLOCK_ELEMENTS = 256
"""Fewer elements give no usable scale."""

MATCHED_SHARE = 0.9999
HARD_CAP = 10.0
"""No element may miss the bound by this factor."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Bound on the error of one element."""

    rtol: float
    stol: float
    """Weight of the block's scale."""

    factor: float = 1.0
    """From the task's own noise floor, at least 1."""


BASE = {
    Precision.IEEE: Tolerance(rtol=2e-5, stol=2e-5),  # fp16 rounding (2.4e-4 relative on average) is far outside
    # Eight TF32 half-ulps; bf16 products miss it in one element of twenty.
    Precision.TF32: Tolerance(rtol=4e-3, stol=4e-3),
    Precision.LOWP: Tolerance(rtol=1.6e-2, stol=1.6e-2),  # four bf16 half-ulps
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outcome for one output."""

    is_right: bool
    max_abs_err: float
    """Over finite elements; infinite when a non-finite element is misplaced."""

    mismatched: int
    worst_ratio: float
    """Largest error over its bound."""

    first_bad: tuple[int, ...] | None = None
    """Index of the first element outside the bound."""


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two contiguous tensors hold the same bytes; NaN equals itself."""
    if left.numel() == 0:
        return True
    a, b = left.reshape(-1).view(torch.uint8), right.reshape(-1).view(torch.uint8)
    if a.numel() % 8 == 0 and a.data_ptr() % 8 == 0 and b.data_ptr() % 8 == 0:
        a, b = a.view(torch.int64), b.view(torch.int64)
    return torch.equal(a, b)


def compare(output: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> Comparison:
    """Compare one output, already known to have the shape and type of `expected`."""
    if not expected.is_floating_point():
        return _compare_exact(output, expected)
    if output.is_contiguous() and expected.is_contiguous() and torch.equal(output, expected):
        return Comparison(True, 0.0, 0, 0.0)
    block = block_elements(tuple(expected.shape))
    got, want = output.reshape(-1), expected.reshape(-1)
    step = CHUNK_ELEMENTS // block * block or CHUNK_ELEMENTS  # a block larger than a chunk is cut
    mismatched, worst, largest, first = 0, 0.0, 0.0, None
    for start in range(0, want.numel(), step):
        rows = (-1, min(block, step, want.numel() - start))
        ratio, error = error_ratio(
            got[start : start + step].view(rows), want[start : start + step].view(rows), tolerance
        )
        bad = int((ratio > 1.0).sum())
        mismatched += bad
        worst = max(worst, float(ratio.max()))
        largest = max(largest, float(error.max()))
        if bad and first is None:
            first = start + int(torch.argmax((ratio > 1.0).view(-1).to(torch.uint8)))
    is_right = is_good_enough(worst, mismatched, expected.numel())
    index = None if first is None else _unravel(first, tuple(expected.shape))
    return Comparison(is_right, largest, mismatched, worst, index)


def is_good_enough(worst: float, mismatched: int, count: int) -> bool:
    """Whether an output of `count` elements is right.

    Args:
        worst: Largest error over its bound.
        mismatched: Elements outside the bound.
    """
    return worst <= HARD_CAP and mismatched <= (1.0 - MATCHED_SHARE) * count


def error_ratio(
    got: torch.Tensor,  # (blocks, block)
    want: torch.Tensor,  # (blocks, block)
    tolerance: Tolerance,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Error over its bound, and absolute error, per element. A misplaced NaN or infinity has an infinite ratio."""
    wide = torch.float64 if want.dtype == torch.float64 else torch.float32
    y, r = got.to(wide), want.to(wide)
    finite = torch.isfinite(r)
    magnitude = torch.where(finite, r, 0.0).abs()
    scale = magnitude.sqrt().mean(dim=1, keepdim=True).square()
    tiny = torch.finfo(wide).tiny
    bound = tolerance.factor * (tolerance.rtol * magnitude + tolerance.stol * scale) + tiny
    error = (y - r).abs()
    same_special = ~finite & ((y == r) | (torch.isnan(y) & torch.isnan(r)))
    error = torch.where(same_special, 0.0, error)
    error = torch.where(torch.isfinite(error), error, torch.inf)
    return error / bound, error


def block_elements(shape: tuple[int, ...]) -> int:
    """Elements per scale block: trailing dimensions until there are enough, all of them for a small tensor."""
    block = 1
    for size in reversed(shape):
        block *= size
        if block >= MIN_BLOCK_ELEMENTS:
            break
    return max(1, block)


def _compare_exact(output: torch.Tensor, expected: torch.Tensor) -> Comparison:
    """Integers, booleans and complex numbers must be equal."""
    wrong = output != expected
    mismatched = int(wrong.sum())
    if mismatched == 0:
        return Comparison(True, 0.0, 0, 0.0)
    first = int(torch.argmax(wrong.reshape(-1).to(torch.uint8)))
    error = float("inf") if expected.is_complex() else float((output.double() - expected.double()).abs().max())
    return Comparison(False, error, mismatched, float("inf"), _unravel(first, tuple(expected.shape)))


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        flat, rest = divmod(flat, size)
        index.append(rest)
    return tuple(reversed(index))
