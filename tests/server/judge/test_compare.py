"""Which outputs count as right: honest arithmetic passes, cheaper or lazier arithmetic fails, under each contract."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernel_env.terms import Precision
from server.judge import compare as comparison
from server.judge.compare import BASE, HARD_CAP, Comparison, Tolerance, block_elements, compare, error_ratio, same_bits

LOOSE = Tolerance(rtol=0.1, stol=0.0)
Make = Callable[[Tensor, Tensor], Tensor]


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def operands(k: int) -> tuple[Tensor, Tensor]:
    return normal(128, k, seed=2), normal(k, 512, seed=3)


def tf32(x: Tensor) -> Tensor:
    """Nearest value with ten explicit bits of fraction, ties to even."""
    bits = x.view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


def bf16(x: Tensor) -> Tensor:
    return x.bfloat16().float()


def fp16(x: Tensor) -> Tensor:
    return x.half().float()


def fp32_product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def tf32_product(a: Tensor, b: Tensor) -> Tensor:
    return tf32(a) @ tf32(b)


def fp16_product(a: Tensor, b: Tensor) -> Tensor:
    return fp16(a) @ fp16(b)


def bf16_product(a: Tensor, b: Tensor) -> Tensor:
    return bf16(a) @ bf16(b)


def fp16_result(a: Tensor, b: Tensor) -> Tensor:
    return fp16(a @ b)


def bf16_result(a: Tensor, b: Tensor) -> Tensor:
    return bf16(a @ b)


def k_truncated(a: Tensor, b: Tensor) -> Tensor:
    return a[:, :-1] @ b[:-1]


def zeros(a: Tensor, b: Tensor) -> Tensor:
    return torch.zeros_like(a @ b)


def mean(a: Tensor, b: Tensor) -> Tensor:
    exact = a @ b
    return torch.full_like(exact, float(exact.mean()))


def permuted(a: Tensor, b: Tensor) -> Tensor:
    return (a @ b).flip(0)


def transposed_tiles(a: Tensor, b: Tensor) -> Tensor:
    exact = a @ b
    exact[:32, :32] = exact[:32, :32].T.clone()
    return exact


def against_exact(make: Make, k: int, tolerance: Tolerance) -> Comparison:
    a, b = operands(k)
    return compare(make(a, b), (a.double() @ b.double()).float(), tolerance)


@pytest.mark.parametrize("k", [64, 1024])
@pytest.mark.parametrize(
    ("contract", "make"),
    [
        (Precision.IEEE, fp32_product),
        (Precision.TF32, fp32_product),
        (Precision.TF32, tf32_product),
        (Precision.TF32, fp16_product),  # as many bits of fraction as TF32
        (Precision.LOWP, fp32_product),
        (Precision.LOWP, bf16_product),
        (Precision.LOWP, fp16_product),
        (Precision.LOWP, bf16_result),
    ],
)
def test_the_arithmetic_a_contract_allows_passes(contract: Precision, make: Make, k: int) -> None:
    result = against_exact(make, k, BASE[contract])
    assert result.is_right
    assert 0 < result.max_abs_err < 1.0


@pytest.mark.parametrize("k", [64, 1024])
@pytest.mark.parametrize(
    ("contract", "make"),
    [
        *((Precision.IEEE, make) for make in (tf32_product, fp16_product, bf16_product, fp16_result, bf16_result)),
        (Precision.TF32, bf16_product),
        *((contract, make) for contract in Precision for make in (k_truncated, zeros, mean, permuted, transposed_tiles)),
    ],
)
def test_cheaper_arithmetic_and_wrong_outputs_fail(contract: Precision, make: Make, k: int) -> None:
    result = against_exact(make, k, BASE[contract])
    assert not result.is_right
    assert result.mismatched > 0.001 * 128 * 512
    assert result.first_bad is not None


def test_bf16_products_fail_under_tf32_even_when_tf32_noise_has_widened_the_tolerance() -> None:
    base = BASE[Precision.TF32]
    a, b = operands(1024)
    ratio, _ = error_ratio(tf32_product(a, b), (a.double() @ b.double()).float(), base)
    widened = Tolerance(base.rtol, base.stol, factor=4.0 * float(ratio.max()))
    assert widened.factor > 1.0
    assert not against_exact(bf16_product, 1024, widened).is_right


@pytest.mark.parametrize("make", [zeros, mean, permuted])
def test_lazy_outputs_of_an_activation_fail(make: Make) -> None:
    """Half of a ReLU's outputs are zero: a zero output is right there, and only there."""
    expected = normal(64, 1024).relu()
    assert not compare(make(expected, torch.eye(1024)), expected, BASE[Precision.LOWP]).is_right


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


def test_spikes_buy_their_neighbours_hardly_any_tolerance() -> None:
    expected = normal(1, 4096)
    near_zero = int(expected.abs().argmin())
    with_spike = expected.clone()
    with_spike[0, (near_zero + 1) % 4096] = 100.0 * float(expected.abs().max())
    off = expected.clone()
    off[0, near_zero] += 1e-3
    plain, _ = error_ratio(off, expected, BASE[Precision.IEEE])
    off[0, (near_zero + 1) % 4096] = with_spike[0, (near_zero + 1) % 4096]
    spiked, _ = error_ratio(off, with_spike, BASE[Precision.IEEE])
    assert 0.95 < float(spiked[0, near_zero] / plain[0, near_zero]) < 1.0


def test_a_large_row_buys_another_row_no_tolerance() -> None:
    expected = normal(2, 256)
    expected[1] *= 1e6
    output = expected.clone()
    output[0] += 1e-2
    result = compare(output, expected, BASE[Precision.TF32])
    assert not result.is_right
    assert result.first_bad is not None
    assert result.first_bad[0] == 0


def test_a_tiny_share_may_miss_the_bound_but_not_by_the_cap() -> None:
    expected = torch.ones(200, 200)
    output = expected.clone()
    output[3, 5] += 0.1 * (HARD_CAP - 1)
    within = compare(output, expected, LOOSE)
    assert within.is_right
    assert (within.mismatched, within.first_bad) == (1, (3, 5))
    output[3, 5] = 1.0 + 0.1 * (HARD_CAP + 1)
    beyond = compare(output, expected, LOOSE)
    assert not beyond.is_right
    assert beyond.worst_ratio == pytest.approx(HARD_CAP + 1)


@pytest.mark.parametrize(("count", "is_right"), [(0, True), (4, True), (5, False)])
def test_more_than_one_in_ten_thousand_beyond_the_bound_is_wrong(count: int, is_right: bool) -> None:
    expected = torch.ones(40_100)
    output = expected.clone()
    output[100 : 100 + count] = 1.2
    result = compare(output, expected, LOOSE)
    assert (result.is_right, result.mismatched) == (is_right, count)


def test_a_small_output_may_not_miss_at_all() -> None:
    expected = torch.ones(100)
    output = expected.clone()
    output[99] = 1.2
    assert not compare(output, expected, LOOSE).is_right


def test_the_factor_widens_the_bound() -> None:
    expected = torch.ones(256)
    assert not compare(expected * 1.15, expected, LOOSE).is_right
    assert compare(expected * 1.15, expected, Tolerance(0.1, 0.0, factor=2.0)).is_right


def test_the_error_reported_is_the_largest_absolute_one() -> None:
    expected = normal(8, 256)
    output = expected.clone()
    output[2, 2] += 0.25
    output[7, 1] -= 0.75
    result = compare(output, expected, BASE[Precision.IEEE])
    assert result.max_abs_err == pytest.approx(0.75, rel=1e-5)
    assert (result.mismatched, result.first_bad) == (2, (2, 2))


@pytest.mark.parametrize(
    ("shape", "where"), [((1000,), (997,)), ((3, 5, 7), (2, 4, 6)), ((4, 300, 2), (1, 299, 0)), ((), ())]
)
def test_the_first_bad_index_has_the_shape_of_the_output(shape: tuple[int, ...], where: tuple[int, ...]) -> None:
    expected = torch.ones(shape)
    output = expected.clone()
    output[where] = 50.0
    result = compare(output, expected, BASE[Precision.LOWP])
    assert not result.is_right
    assert (result.first_bad, result.mismatched) == (where, 1)


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
