"""Lets Triton's autotuner choose a configuration where Triton runs in its interpreter. Trusted: runs in the zygote.

Without a GPU Triton has no driver, and the autotuner asks the driver how to measure. The interpreter's times say
nothing about a GPU and earn nothing, so one call per configuration is enough: what matters is that every one runs.
"""

import time
from collections.abc import Callable, Sequence
from typing import NoReturn


class InterpreterDriver:
    """Stands where a driver would; knows how to measure, and no device."""

    def get_benchmarker(self) -> Callable[..., Sequence[float]]:
        """What the autotuner calls for each configuration."""
        return _milliseconds

    def get_active_torch_device(self) -> NoReturn:
        """Raise as Triton does without a driver."""
        raise RuntimeError("Triton runs in its interpreter here: there is no device")

    get_current_target = get_active_torch_device


def enable_autotuning() -> None:
    """Give Triton that driver. It is inherited by every candidate."""
    from triton.runtime.driver import driver

    driver.set_active(InterpreterDriver())


def _milliseconds(kernel_call: Callable[[], object], *, quantiles: Sequence[float], **_: object) -> Sequence[float]:
    """One time for each quantile that is asked for."""
    start = time.perf_counter()
    kernel_call()
    return [1e3 * (time.perf_counter() - start)] * len(quantiles)
