"""The judge's kernels say what the definitions in plain torch say: on a GPU, else in Triton's interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kernel_env.terms import Precision
from server.judge import fused
from server.judge.compare import BASE, error_ratio

IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if IS_INTERPRETED else "cuda"
NUMPY_REMARK = "ignore:invalid value encountered:RuntimeWarning"
"""The interpreter computes with numpy, which remarks on the difference of two infinities."""

MULTIPLIER = 0x5DEE_CE66_D123_4567


@pytest.mark.slow
def test_the_kernels_agree_with_their_definitions_in_the_interpreter() -> None:
    """The tests below, in a process of their own, because Triton decides when it is imported."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "gpu",
            "-p",
            "no:cacheprovider",
            "-W",
            NUMPY_REMARK,
            str(Path(__file__)),
        ],
        cwd=root,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def row_errors(output: Tensor, expected: Tensor, block: int, rtol: float, stol: float) -> tuple[float, float, int]:
    """Largest ratio, largest error and count, from places that held nothing."""
    worst, mismatched = torch.zeros(2, device=DEVICE), torch.zeros(1, dtype=torch.int64, device=DEVICE)
    fused.row_errors(output, expected, block, rtol, stol, worst, mismatched)
    return float(worst[0]), float(worst[1]), int(mismatched)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("columns", "dtype"), [(5000, torch.float32), (256, torch.float32), (256, torch.float16), (256, torch.bfloat16)]
)
def test_row_errors_are_those_of_the_definition(columns: int, dtype: torch.dtype) -> None:
    expected = normal(64, columns).to(dtype)
    output = (expected.float() * (1 + 1e-3 * normal(64, columns, seed=2))).to(dtype)
    output[5, 7] += 3.0
    tolerance = BASE[Precision.TF32]
    ratio, error = error_ratio(output, expected, tolerance)
    worst, largest, count = row_errors(output, expected, columns, tolerance.rtol, tolerance.stol)
    assert worst == pytest.approx(float(ratio.max()), rel=1e-3)
    assert largest == pytest.approx(float(error.max()), rel=1e-6)
    assert abs(count - int((ratio > 1).sum())) <= 0.001 * output.numel()
    assert count >= 1


@pytest.mark.gpu
@pytest.mark.parametrize(("got", "want"), [(float("nan"), 1.0), (1.0, float("nan")), (float("inf"), float("-inf"))])
def test_a_misplaced_special_value_has_an_infinite_error(got: float, want: float) -> None:
    expected, output = torch.ones(64, 256, device=DEVICE), torch.ones(64, 256, device=DEVICE)
    expected[63, 255], output[63, 255] = want, got
    worst, largest, count = row_errors(output, expected, 256, 1e-3, 1e-3)
    assert (worst, largest, count) == (float("inf"), float("inf"), 1)


@pytest.mark.gpu
@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf")])
def test_a_special_value_at_its_place_is_no_error(special: float) -> None:
    expected = normal(64, 300)
    expected[1, 2] = special
    assert row_errors(expected.clone(), expected, 300, 1e-3, 1e-3) == (0.0, 0.0, 0)


@pytest.mark.gpu
def test_what_was_found_before_is_kept() -> None:
    expected = normal(64, 300)
    worst = torch.tensor([7.0, 9.0], device=DEVICE)
    mismatched = torch.tensor([5], device=DEVICE)
    fused.row_errors(expected.clone(), expected, 300, 1e-3, 1e-3, worst, mismatched)
    assert (worst.tolist(), mismatched.tolist()) == ([7.0, 9.0], [5])


@pytest.mark.gpu
@pytest.mark.parametrize("words", [1, 4096, 4097, 20_000])
def test_changed_words_are_counted(words: int) -> None:
    left = bytes_of(8 * words)
    right, count = left.clone(), torch.zeros(1, dtype=torch.int64, device=DEVICE)
    fused.count_changes(left, right, count)
    assert int(count) == 0
    places = sorted({0, words // 2, words - 1})
    for place in places:
        right[8 * place + 7] ^= 0x80
    fused.count_changes(left, right, count)
    assert int(count) == len(places)


def weights() -> Tensor:
    generator = torch.Generator(device=DEVICE).manual_seed(3)
    return torch.empty(fused.WEIGHTS, dtype=torch.int64, device=DEVICE).random_(generator=generator)


def bytes_of(count: int) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.randint(256, (count,), generator=generator, dtype=torch.uint8).to(DEVICE)


@pytest.mark.gpu
def test_every_bit_of_a_word_counts_in_the_sum() -> None:
    block, secret = bytes_of(8 * 5000), weights()
    before = int(fused.weigh(block.view(torch.int64), secret, MULTIPLIER))
    assert int(fused.weigh(block.view(torch.int64), secret, MULTIPLIER)) == before
    seen = {before}
    for place in (0, 8 * 4999):
        for byte in range(place, place + 8):
            for bit in (0, 7):
                block[byte] ^= 1 << bit
                seen.add(int(fused.weigh(block.view(torch.int64), secret, MULTIPLIER)))
                block[byte] ^= 1 << bit
    assert len(seen) == 1 + 2 * 8 * 2


@pytest.mark.gpu
@pytest.mark.parametrize("distance", [1, 4095, 4096])
def test_swapped_words_and_two_flipped_signs_are_seen(distance: int) -> None:
    words, secret = bytes_of(8 * 5000).view(torch.int64), weights()
    before = int(fused.weigh(words, secret, MULTIPLIER))
    swapped = words.clone()
    swapped[10], swapped[10 + distance] = words[10 + distance], words[10]
    assert int(fused.weigh(swapped, secret, MULTIPLIER)) != before
    flipped = words.clone()
    flipped[10] ^= -(2**63)
    flipped[10 + distance] ^= -(2**63)
    assert int(fused.weigh(flipped, secret, MULTIPLIER)) != before


@pytest.mark.gpu
def test_the_sum_depends_on_both_secrets() -> None:
    words, secret = bytes_of(8 * 300).view(torch.int64), weights()
    sums = {
        int(fused.weigh(words, secret, MULTIPLIER)),
        int(fused.weigh(words, secret, MULTIPLIER + 2)),
        int(fused.weigh(words, secret.roll(1), MULTIPLIER)),
    }
    assert len(sums) == 3
