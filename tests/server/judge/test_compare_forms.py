"""Comparison of outputs of every form: special values, types, shapes, strides, sizes, and bits."""

import pytest
import torch
from torch import Tensor

from kernel_env.terms import Precision
from server.judge import compare as comparison
from server.judge.compare import BASE, Comparison, Tolerance, block_elements, compare, error_ratio, same_bits


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, float("nan")), (300, float("inf")), (511, float("-inf"))],
)
def test_a_special_value_is_right_at_its_place_only(place: int, value: float) -> None:
    expected = normal(2, 256)
    output = expected.clone()
    output.view(-1)[place] = value
    misplaced = compare(output, expected, BASE[Precision.LOWP])
    assert not misplaced.is_right
    assert misplaced.max_abs_err == float("inf")
    assert misplaced.first_bad == (place // 256, place % 256)
    assert not compare(expected, output, BASE[Precision.LOWP]).is_right
    nudged = output * (1 + 1e-6)
    same = compare(nudged, output, BASE[Precision.IEEE])
    assert same.is_right
    assert 0 < same.max_abs_err < 1e-4


def test_infinities_of_the_other_sign_and_nan_for_infinity_are_wrong() -> None:
    expected = torch.full((256,), float("inf"))
    for wrong in (float("-inf"), float("nan"), 3e38):
        assert not compare(torch.full((256,), wrong), expected, BASE[Precision.LOWP]).is_right


def test_a_special_value_does_not_spoil_the_scale_of_its_neighbours() -> None:
    expected = normal(1, 256)
    expected[0, 7] = float("inf")
    ratio, _ = error_ratio(expected + 1e-3, expected, BASE[Precision.IEEE])
    assert float(ratio[0, 7]) == 0.0
    assert bool((ratio[0, :7] > 1).all())
    assert bool(torch.isfinite(ratio).all())


def test_scalars_are_compared_by_their_own_size() -> None:
    assert compare(torch.tensor(1.000001), torch.tensor(1.0), BASE[Precision.IEEE]).is_right
    assert not compare(torch.tensor(1.001), torch.tensor(1.0), BASE[Precision.IEEE]).is_right
    assert not compare(torch.tensor(1e-30), torch.tensor(0.0), BASE[Precision.LOWP]).is_right


def test_a_denormal_flushed_to_zero_is_right() -> None:
    assert compare(torch.zeros(300), torch.full((300,), 1e-40), BASE[Precision.IEEE]).is_right


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0, 3)])
def test_empty_outputs_are_right(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    result = compare(torch.empty(shape, dtype=dtype), torch.empty(shape, dtype=dtype), BASE[Precision.IEEE])
    assert result == Comparison(True, 0.0, 0, 0.0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn])
def test_every_floating_type_is_compared_by_value(dtype: torch.dtype) -> None:
    expected = normal(4, 256).to(dtype)
    assert compare(expected.clone(), expected, BASE[Precision.LOWP]).is_right
    assert not compare(normal(4, 256, seed=9).to(dtype), expected, BASE[Precision.LOWP]).is_right


def test_double_precision_is_compared_in_double_precision() -> None:
    expected = normal(4, 256).double()
    strict = Tolerance(rtol=1e-12, stol=1e-12)
    assert compare(expected * (1 + 1e-13), expected, strict).is_right
    assert not compare(expected * (1 + 1e-9), expected, strict).is_right


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool])
def test_integers_and_booleans_must_be_equal(dtype: torch.dtype) -> None:
    expected = (torch.arange(600).view(2, 300) % 2).to(dtype)
    assert compare(expected.clone(), expected, BASE[Precision.LOWP]) == Comparison(True, 0.0, 0, 0.0)
    output = expected.clone()
    output[1, 3], output[1, 200] = 1 - int(expected[1, 3]), 1 - int(expected[1, 200])
    result = compare(output, expected, BASE[Precision.LOWP])
    assert not result.is_right
    assert (result.mismatched, result.first_bad, result.max_abs_err) == (2, (1, 3), 1.0)


def test_neighbouring_large_integers_are_told_apart() -> None:
    expected = torch.tensor([2**62])
    assert not compare(expected + 1, expected, BASE[Precision.LOWP]).is_right


def test_complex_values_must_be_equal() -> None:
    expected = torch.complex(normal(4), normal(4, seed=5))
    assert compare(expected.clone(), expected, BASE[Precision.IEEE]).is_right
    assert not compare(expected + 1e-6, expected, BASE[Precision.IEEE]).is_right


@pytest.mark.parametrize("which", ["output", "expected", "both"])
def test_a_tensor_that_is_not_contiguous_is_compared_by_index(which: str) -> None:
    expected = normal(300, 40)
    strided = torch.empty(40, 300).t().copy_(expected)
    left, right = (strided if which in {name, "both"} else expected for name in ("output", "expected"))
    assert compare(left, right, BASE[Precision.IEEE]).is_right
    left = left.clone()
    left[17, 23] += 1.0
    assert compare(left, right, BASE[Precision.IEEE]).first_bad == (17, 23)


@pytest.mark.parametrize("shape", [(64, 256), (16_384,), (2, 8192), (63, 260), (5, 3001)])
@pytest.mark.parametrize("chunk", [100, 512, 1000, 4096])
def test_a_huge_output_is_compared_in_chunks_with_the_same_outcome(
    shape: tuple[int, ...], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = normal(*shape)
    output = expected * (1 + 1e-7)
    output.view(-1)[-5] += 1.0
    output.view(-1)[7000] += 1.0
    whole = compare(output, expected, BASE[Precision.IEEE])
    largest = 0

    def watched(got: Tensor, want: Tensor, tolerance: Tolerance) -> tuple[Tensor, Tensor]:
        nonlocal largest
        largest = max(largest, got.numel())
        return error_ratio(got, want, tolerance)

    monkeypatch.setattr(comparison, "CHUNK_ELEMENTS", chunk)
    monkeypatch.setattr(comparison, "error_ratio", watched)
    chunked = compare(output, expected, BASE[Precision.IEEE])
    assert largest <= chunk
    assert (chunked.is_right, chunked.mismatched, chunked.first_bad) == (False, 2, whole.first_bad)
    assert chunked.max_abs_err == whole.max_abs_err
    assert compare(expected * (1 + 1e-7), expected, BASE[Precision.IEEE]).is_right


@pytest.mark.parametrize(
    ("shape", "block"),
    [((), 1), ((7,), 7), ((1000,), 1000), ((64, 256), 256), ((64, 16, 20), 320), ((3, 2), 6), ((0, 5), 1), ((9, 1), 9)],
)
def test_a_block_is_a_row_or_several_short_rows(shape: tuple[int, ...], block: int) -> None:
    assert block_elements(shape) == block


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8, torch.bool, torch.float64, torch.int32])
@pytest.mark.parametrize("count", [1, 7, 64])
def test_same_bits_sees_every_byte(dtype: torch.dtype, count: int) -> None:
    left = torch.zeros(count, dtype=dtype)
    assert same_bits(left, left.clone())
    for byte in range(count * dtype.itemsize):
        right = left.clone()
        right.view(torch.uint8)[byte] = 1
        assert not same_bits(left, right)


def test_same_bits_goes_by_bits_not_by_value() -> None:
    nan = torch.full((3,), float("nan"))
    assert same_bits(nan, nan.clone())
    assert not same_bits(torch.zeros(3), -torch.zeros(3))
    assert same_bits(torch.empty(0, 4), torch.empty(0, 4))
    assert same_bits(torch.tensor(1.5), torch.tensor(1.5))
