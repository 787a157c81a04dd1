"""The least time a device could need."""

import pytest

from kernel_env.terms import Precision
from server.judge.roofline import Ceilings, floor, is_plausible

CEILINGS = Ceilings(4000.0, {"ieee": 50.0, "tf32": 350.0, "lowp": 700.0}, 2e-6)


def test_an_elementwise_task_is_bound_by_memory() -> None:
    limit = floor(bytes_moved=8e9, flops=1e9, contract=Precision.IEEE, ceilings=CEILINGS)
    assert limit.bound == "memory"
    assert limit.min_s == pytest.approx(2e-3)
    assert (limit.bytes_moved, limit.flops) == (8e9, 1e9)


@pytest.mark.parametrize(
    ("contract", "expected_s"), [(Precision.IEEE, 2.8e-3), (Precision.TF32, 4e-4), (Precision.LOWP, 2e-4)]
)
def test_a_product_is_bound_by_the_peak_of_its_contract(contract: Precision, expected_s: float) -> None:
    limit = floor(bytes_moved=1e6, flops=1.4e11, contract=contract, ceilings=CEILINGS)
    assert limit.bound == "compute"
    assert limit.min_s == pytest.approx(expected_s)


def test_a_tiny_task_is_bound_by_its_launch() -> None:
    limit = floor(bytes_moved=1024, flops=0, contract=Precision.IEEE, ceilings=CEILINGS)
    assert (limit.bound, limit.min_s) == ("launch", 2e-6)


@pytest.mark.parametrize(("gb_s", "plausible"), [(4260.0, True), (2880.0, True), (2800.0, False), (5100.0, False)])
def test_a_calibration_is_believed_only_near_the_datasheet(gb_s: float, plausible: bool) -> None:
    assert is_plausible("NVIDIA H200", Ceilings(gb_s, {}, 1e-6)) is plausible


def test_a_device_without_a_datasheet_is_believed() -> None:
    assert is_plausible("some host processor", Ceilings(1.0, {}, 1e-6))
