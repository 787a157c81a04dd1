"""The roofline of a task on a device, from what its reference moves and computes. Trusted."""

from .device import Device
from .reference import Reference
from .roofline import Ceilings, Floor, floor


def floor_of(reference: Reference, device: Device, ceilings: Ceilings) -> Floor:
    """Least time of one call.

    Args:
        ceilings: What `device` was measured to reach.
    """
    moved = reference.stated_bytes
    if moved is None:
        moved = reference.input_bytes + reference.output_bytes
        if reference.parameter_bytes > device.last_level_cache_bytes():
            moved += reference.parameter_bytes  # smaller ones stay in cache between calls
    return floor(moved, reference.flops, reference.contract, ceilings)
