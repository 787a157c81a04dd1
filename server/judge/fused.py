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
    worst_ratio,  # (rows,) fp32
    worst_error,  # (rows,) fp32
    mismatched,  # (rows,) int32
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
    tl.store(worst_ratio + row, tl.max(ratio_max))
    tl.store(worst_error + row, tl.max(error_max))
    tl.store(mismatched + row, tl.sum(bad))


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
    output: torch.Tensor, expected: torch.Tensor, block: int, rtol: float, stol: float
) -> tuple[float, float, int]:
    """Largest error over its bound, largest error, and elements outside the bound, as in `compare.error_ratio`."""
    rows = expected.numel() // block
    device = expected.device
    ratio = torch.empty(rows, device=device)
    error = torch.empty(rows, device=device)
    bad = torch.empty(rows, dtype=torch.int32, device=device)
    _row_errors[(rows,)](
        output,
        expected,
        ratio,
        error,
        bad,
        block,
        rtol,
        stol,
        torch.finfo(torch.float32).tiny,
        BLOCK=BLOCK,
        num_warps=8,
    )
    worst, largest, count = torch.stack([ratio.max().double(), error.max().double(), bad.sum().double()]).tolist()
    return worst, largest, int(count)


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
