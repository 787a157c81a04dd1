"""What a device is taken to reach."""

import time

import pytest

from server.judge import calibrate
from server.judge.device import CpuDevice


def test_work_that_is_slow_on_this_device_is_not_repeated_for_long() -> None:
    """A product in bf16 takes seconds on some processors, and a server would take a minute to start."""
    start = time.monotonic()
    best_s = calibrate._best(CpuDevice(1), lambda: time.sleep(0.2), inner=4)
    assert best_s == pytest.approx(0.2, rel=0.2)
    assert time.monotonic() - start < 2.0


def test_quick_work_is_repeated_and_its_best_counts() -> None:
    naps_s = [0.05, *(28 * [0.002])]
    slept: list[float] = []

    def work() -> None:
        slept.append(naps_s[len(slept)])
        time.sleep(slept[-1])

    assert calibrate._best(CpuDevice(1), work, inner=4) == pytest.approx(0.002, rel=0.5)
    assert len(slept) == len(naps_s)
