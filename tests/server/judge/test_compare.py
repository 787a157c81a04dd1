"""Which outputs count as right: honest arithmetic passes, cheaper or lazier arithmetic fails, under each contract."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernel_env.terms import Precision
from server.judge.compare import BASE, HARD_CAP, Comparison, Tolerance, compare, error_ratio

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
        *(
            (contract, make)
            for contract in Precision
            for make in (k_truncated, zeros, mean, permuted, transposed_tiles)
        ),
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
