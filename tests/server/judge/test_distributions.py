"""Hidden inputs: the same draw makes the same values, another draw unrelated ones, and only free inputs are touched."""

import pytest
import torch
from torch import Tensor

from server.judge.distributions import SPIKE_FACTOR, Distribution, Draw, redistribute

REDRAWN = [Distribution.NORMAL, Distribution.UNIFORM, Distribution.SPIKY]
COUNT = 100_000
SEED = 0x1234_5678_9ABC_DEF0 >> 1


def drawn(distribution: Distribution, seed: int = SEED, position: int = 0, count: int = COUNT) -> Tensor:
    values = torch.full((count,), 7.0)
    redistribute(values, Draw(seed, distribution), position)
    return values


def correlation(left: Tensor, right: Tensor) -> float:
    """Of ranks rather than of values, so that spikes do not hide it."""
    ranks = torch.stack([left.argsort().argsort(), right.argsort().argsort()]).double()
    return float(torch.corrcoef(ranks)[0, 1])


@pytest.mark.parametrize("distribution", REDRAWN)
def test_the_same_draw_gives_the_same_values(distribution: Distribution) -> None:
    assert torch.equal(drawn(distribution), drawn(distribution))


@pytest.mark.parametrize("distribution", REDRAWN)
@pytest.mark.parametrize("step", [1, 2, 2**32, 2**62])
def test_neighbouring_seeds_give_unrelated_values(distribution: Distribution, step: int) -> None:
    """A step of 2**32 is what a generator seeded with 32 bits would not see."""
    other = drawn(distribution, (SEED + step) % 2**63)
    assert abs(correlation(drawn(distribution), other)) < 0.02


@pytest.mark.parametrize("distribution", REDRAWN)
def test_inputs_of_one_call_are_unrelated(distribution: Distribution) -> None:
    assert abs(correlation(drawn(distribution, position=0), drawn(distribution, position=1))) < 0.02


@pytest.mark.parametrize("distribution", REDRAWN)
def test_the_next_input_of_a_draw_is_not_an_input_of_the_next_draw(distribution: Distribution) -> None:
    second = drawn(distribution, SEED, position=1)
    for step in (-1, 1):
        assert not torch.equal(second, drawn(distribution, SEED + step, position=0))


def test_normal_values_have_mean_zero_and_a_deviation_that_varies() -> None:
    deviations = []
    for seed in range(8):
        values = drawn(Distribution.NORMAL, seed)
        deviations.append(float(values.std()))
        assert abs(float(values.mean())) < 0.05
        assert 0.49 < deviations[-1] < 2.02
    assert max(deviations) - min(deviations) > 0.3


def test_uniform_values_fill_a_symmetric_interval() -> None:
    for seed in range(8):
        values = drawn(Distribution.UNIFORM, seed)
        top = float(values.max())
        assert 0.99 < top < 4.001
        assert float(values.min()) == pytest.approx(-top, rel=0.01)
        assert float(values.abs().mean()) == pytest.approx(top / 2, rel=0.02)


def test_spiky_values_have_rare_large_spikes() -> None:
    for seed in range(8):
        values = drawn(Distribution.SPIKY, seed)
        bulk = float(values.abs().median()) / 0.6745  # of a standard normal
        spikes = int((values.abs() > 8 * bulk).sum())
        assert 0.5 * COUNT * 1e-4 <= spikes <= COUNT * 1e-4
        assert float(values.abs().max()) > 0.5 * SPIKE_FACTOR * bulk


def test_a_small_spiky_input_has_a_spike_too() -> None:
    plain, spiky = (drawn(d, count=50) for d in (Distribution.NORMAL, Distribution.SPIKY))
    assert int((plain != spiky).sum()) == 1
    assert float((spiky / plain).max()) == pytest.approx(SPIKE_FACTOR)


def test_values_as_given_stay() -> None:
    assert torch.equal(drawn(Distribution.AS_GIVEN), torch.full((COUNT,), 7.0))


@pytest.mark.parametrize("distribution", REDRAWN)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_floating_type_gets_finite_values_in_its_own_shape(
    distribution: Distribution, dtype: torch.dtype
) -> None:
    values = torch.zeros(30, 4, 50, dtype=dtype)
    redistribute(values, Draw(SEED, distribution), 0)
    assert values.dtype is dtype
    assert bool(torch.isfinite(values).all())
    assert torch.equal(values.view(-1), drawn(distribution, count=6000).to(dtype))


@pytest.mark.parametrize("distribution", REDRAWN)
def test_empty_inputs_and_scalars_are_drawn_without_an_error(distribution: Distribution) -> None:
    redistribute(torch.empty(0, 3), Draw(SEED, distribution), 0)
    scalar = torch.tensor(7.0)
    redistribute(scalar, Draw(SEED, distribution), 0)
    assert float(scalar) != 7.0
