"""Least time a device could need for a task. Pure.

Source: Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009, doi:10.1145/1498765.1498785.
"""

from dataclasses import dataclass

from kernel_env.terms import Precision


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the device was measured to reach, alone."""

    bandwidth_gb_s: float
    """Best of reading, writing and copying; 1e9 bytes per second."""

    peak_tflop_s: dict[str, float]
    """Best matrix product per precision contract, 1e12 per second."""

    launch_s: float
    """Least time between two dependent empty launches."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Roofline of one task on one device."""

    min_s: float
    bound: str
    bytes_moved: float
    flops: float


def floor(bytes_moved: float, flops: float, contract: Precision, ceilings: Ceilings) -> Floor:
    """Largest of the memory, compute and launch terms.

    Args:
        bytes_moved: Compulsory traffic: each input read once, each output written once.
        flops: Multiply and add counted as two.
    """
    terms = {
        "memory": bytes_moved / (ceilings.bandwidth_gb_s * 1e9),
        "compute": flops / (ceilings.peak_tflop_s[contract.value] * 1e12),
        "launch": ceilings.launch_s,
    }
    bound = max(terms, key=lambda name: terms[name])
    return Floor(terms[bound], bound, bytes_moved, flops)


DATASHEET_GB_S = {
    # https://www.nvidia.com/en-us/data-center/h200/ and the pages of its siblings
    "NVIDIA H200": 4800.0,
    "NVIDIA H100 80GB HBM3": 3350.0,
    "NVIDIA H100 PCIe": 2000.0,
    "NVIDIA A100-SXM4-80GB": 2039.0,
    "NVIDIA A100-SXM4-40GB": 1555.0,
    "NVIDIA L40S": 864.0,
    "NVIDIA L4": 300.0,
}

PLAUSIBLE = (0.6, 1.05)
"""Share of the datasheet's bandwidth a calibration must reach: less means that somebody else used the device, which
would raise every floor; more means a broken clock."""


def is_plausible(device_name: str, ceilings: Ceilings) -> bool:
    """Whether a calibration can be true. Devices without an entry are believed."""
    datasheet = DATASHEET_GB_S.get(device_name)
    return datasheet is None or PLAUSIBLE[0] <= ceilings.bandwidth_gb_s / datasheet <= PLAUSIBLE[1]
