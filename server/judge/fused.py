"""One-pass kernels for what the judge does to every output: compare it, and fingerprint it.

Trusted, and only a faster spelling: `compare` and `exchange` hold the definitions, in plain torch, and are used
wherever a kernel does not apply. Verification costs many times the submission's own time otherwise, and every output
is verified.
"""

import torch
import triton
import triton.language as tl

BLOCK = 4096
LEAST_ROWS = 64
"""Below this the device would be mostly idle, since a row is the work of one program."""

WEIGHTS = 1 << 20
"""Words of secret weights: 8 MiB, so that they stay in the cache."""

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit  # type: ignore[untyped-decorator]
def _row_errors(  # type: ignore[no-untyped-def]
    got,  # (rows, columns)
    want,  # (rows, columns)
    worst,  # (2,) fp32: ratio, error
    mismatched,  # (1,) int64
    columns,
    rtol,
    stol,
    tiny,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    got += row * columns
    want += row * columns
    roots = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        r = tl.load(want + i, mask=i < columns, other=0.0).to(tl.float32)
        size = tl.abs(r)
        roots += tl.sqrt(tl.where(size < float("inf"), size, 0.0))
    root = tl.sum(roots) / columns
    scale = root * root
    ratio_max = tl.zeros([BLOCK], tl.float32)
    error_max = tl.zeros([BLOCK], tl.float32)
    bad = tl.zeros([BLOCK], tl.int32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < columns
        r = tl.load(want + i, mask=inside, other=0.0).to(tl.float32)
        y = tl.load(got + i, mask=inside, other=0.0).to(tl.float32)
        size = tl.abs(r)
        finite = size < float("inf")  # false for NaN
        bound = rtol * tl.where(finite, size, 0.0) + stol * scale + tiny
        error = tl.abs(y - r)
        same_special = (finite == 0) & ((y == r) | ((y != y) & (r != r)))
        error = tl.where(same_special, 0.0, error)
        error = tl.where(error < float("inf"), error, float("inf"))
        ratio = error / bound
        ratio_max = tl.maximum(ratio_max, ratio)
        error_max = tl.maximum(error_max, error)
        bad += (ratio > 1.0).to(tl.int32)
    row_error = tl.max(error_max)
    # Most rows of a good output add nothing, so that few meet at one address.
    tl.atomic_max(worst, tl.max(ratio_max), mask=row_error > 0.0)
    tl.atomic_max(worst + 1, row_error, mask=row_error > 0.0)
    row_bad = tl.sum(bad).to(tl.int64)
    tl.atomic_add(mismatched, row_bad, mask=row_bad > 0)


@triton.jit  # type: ignore[untyped-decorator]
def _count_changes(  # type: ignore[no-untyped-def]
    left,  # (words,) int64
    right,  # (words,) int64
    count,  # (1,) int64
    words,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < words
    a = tl.load(left + i, mask=inside, other=0)
    b = tl.load(right + i, mask=inside, other=0)
    changed = tl.sum((a != b).to(tl.int32)).to(tl.int64)
    tl.atomic_add(count, changed, mask=changed > 0)


@triton.jit  # type: ignore[untyped-decorator]
def _weigh(  # type: ignore[no-untyped-def]
    words,  # (count,) int64
    weights,  # (WEIGHTS,) int64
    partial,  # (programs,) int64
    count,
    multiplier,
    WEIGHTS: tl.constexpr,
    BLOCK: tl.constexpr,
    STEPS: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.int64)
    for step in range(STEPS):
        i = (program * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        word = tl.load(words + i, mask=i < count, other=0)
        weight = tl.load(weights + i % WEIGHTS) + (i // WEIGHTS) * multiplier
        # In halves, because the top bit of a word times an even weight vanishes modulo 2**64.
        total += (word & 0xFFFFFFFF) * weight + (word >> 32) * (weight * multiplier)
    tl.store(partial + program, tl.sum(total))


def can_compare(output: torch.Tensor, expected: torch.Tensor, block: int) -> bool:
    """Whether `row_errors` applies."""
    return (
        expected.is_cuda
        and expected.dtype in DTYPES
        and output.is_contiguous()
        and expected.is_contiguous()
        and expected.numel() // block >= LEAST_ROWS
    )


def row_errors(
    output: torch.Tensor,
    expected: torch.Tensor,
    block: int,
    rtol: float,
    stol: float,
    worst: torch.Tensor,
    mismatched: torch.Tensor,
) -> None:
    """Largest error over its bound, largest error, and elements outside the bound, as in `compare.error_ratio`.

    Args:
        worst: (2,) fp32, raised to the two.
        mismatched: (1,) int64, to which the number is added.
    """
    rows = expected.numel() // block
    tiny = torch.finfo(torch.float32).tiny
    _row_errors[(rows,)](
        output, expected, worst, mismatched, block, rtol, stol, tiny, BLOCK=BLOCK, num_warps=8
    )  # fmt: skip


def can_count_changes(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether `count_changes` applies."""
    return left.is_cuda and all(
        t.nbytes % 8 == 0 and t.data_ptr() % 8 == 0 and t.is_contiguous() for t in (left, right)
    )


def count_changes(left: torch.Tensor, right: torch.Tensor, count: torch.Tensor) -> None:
    """Add the number of eight-byte words in which two tensors of one size differ to `count`, (1,) int64."""
    words = left.nbytes // 8
    if words:
        a, b = (t.reshape(-1).view(torch.int64) for t in (left, right))
        _count_changes[(triton.cdiv(words, BLOCK),)](a, b, count, words, BLOCK=BLOCK, num_warps=8)


def weigh(words: torch.Tensor, weights: torch.Tensor, multiplier: int) -> torch.Tensor:
    """Keyed, position-dependent sum of eight-byte words, modulo 2**64; a tensor, so that many can be read at once.

    Args:
        multiplier: Secret, odd, 63 bits.
    """
    steps = 16
    programs = triton.cdiv(words.numel(), BLOCK * steps)
    partial = torch.empty(programs, dtype=torch.int64, device=words.device)
    _weigh[(programs,)](words, weights, partial, words.numel(), multiplier, WEIGHTS=WEIGHTS, BLOCK=BLOCK, STEPS=steps)
    return partial.sum()
