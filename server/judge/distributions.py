"""Hidden inputs: which values a timed or checked call sees. Trusted; pure functions of an explicit seed.

A task's own `get_inputs()` fixes shapes, types and structure. Inputs that are free (see `server.tasks.roles`) are then
given values from a distribution drawn per call, so that a shortcut that holds for `torch.rand` alone does not hold.
"""

import random
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch

SPIKE_SHARE = 1e-4
"""Share of elements of a spiky input that are large."""

SPIKE_FACTOR = 100.0


class Distribution(StrEnum):
    """Values of free inputs."""

    AS_GIVEN = "as_given"
    """What `get_inputs()` draws."""

    NORMAL = "normal"
    """Zero mean, standard deviation between 0.5 and 2."""

    UNIFORM = "uniform"
    """Between -a and a, a between 1 and 4."""

    SPIKY = "spiky"
    """Normal, with one element in ten thousand a hundred times larger."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One input set: everything needed to make the same values again."""

    seed: int
    """63 bits. torch's CPU generator folds them to 32; draws are independent all the same, since nobody sees one."""

    distribution: Distribution


def redistribute(tensor: torch.Tensor, draw: Draw, position: int) -> None:
    """Overwrite a free input in place with values of the draw's distribution; `position` is its place in the call."""
    if draw.distribution is Distribution.AS_GIVEN or tensor.numel() == 0:
        return
    own_seed = (draw.seed + 0x9E3779B97F4A7C15 * (position + 1)) % 2**63  # golden ratio: far apart for neighbours
    scale = random.Random(own_seed).uniform(0.5, 2.0)
    if tensor.device.type == "cpu":
        _redistribute_on_host(tensor, draw.distribution, scale, own_seed)
        return
    generator = torch.Generator(device=tensor.device)
    generator.manual_seed(own_seed)
    if draw.distribution is Distribution.UNIFORM:
        tensor.uniform_(-2.0 * scale, 2.0 * scale, generator=generator)
        return
    tensor.normal_(0.0, scale, generator=generator)
    if draw.distribution is Distribution.SPIKY:
        spikes = max(1, int(tensor.numel() * SPIKE_SHARE))
        where = torch.randint(tensor.numel(), (spikes,), generator=generator, device=tensor.device)
        flat = tensor.view(-1)
        flat[where] *= SPIKE_FACTOR


def _redistribute_on_host(tensor: torch.Tensor, distribution: Distribution, scale: float, seed: int) -> None:
    """The same with numpy: five times faster than torch on a CPU, and seeded with more than 32 bits."""
    generator = np.random.Generator(np.random.SFC64(seed))
    count = tensor.numel()
    if distribution is Distribution.UNIFORM:
        values = (generator.random(count, dtype=np.float32) - 0.5) * np.float32(4.0 * scale)
    else:
        values = generator.standard_normal(count, dtype=np.float32) * np.float32(scale)
    if distribution is Distribution.SPIKY:
        where = generator.integers(count, size=max(1, int(count * SPIKE_SHARE)))
        values[where] *= np.float32(SPIKE_FACTOR)
    tensor.copy_(torch.from_numpy(values).view(tensor.shape))
