"""Lays inputs, parameters and outputs out in exported memory, fills and poisons them, and reads them back.

Trusted. Inputs are written here and compared afterwards with a copy made anew from the seed; outputs are read from
here.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ..protocol import Called, Region
from . import fused
from .compare import same_bits
from .device import Arena, Device
from .distributions import Draw
from .layouts import byte_span, dtype_name, view_output
from .reference import Reference, TensorArgument
from .structures import encode_argument

PRIVATE_SHARE = 0.12
"""Share of the free memory that private copies of the inputs may take; beyond it they are made twice."""

WORD_BYTES = 4
SPOTS = 1 << 14
"""Of a part in a thousand that is written late, one is among them in all but one of 10**7 repetitions."""


class Exchange:
    """Memory shared with one candidate."""

    def __init__(self, device: Device, reference: Reference) -> None:
        """Nothing is allocated yet."""
        self._device, self._reference = device, reference
        self._arenas: list[Arena] = []
        self.inputs: Arena | None = None
        self.outputs: Arena | None = None
        self._base = 0
        self._stride = reference.set_bytes
        self._weights: torch.Tensor | None = None
        self._multiplier = secrets.randbits(63) | 1 << 62 | 1
        self._private: dict[int, list[object]] = {}
        self._free_bytes = device.free_bytes()

    def open_inputs(self, sets: int, with_state: bool) -> dict[str, Any]:
        """New block for `sets` input sets, after the parameters if asked for; returns the fields of the command."""
        self._base = self._reference.state_bytes if with_state else 0
        self.inputs = self._allocate(self._base + sets * self._stride)
        if with_state:
            for slot, value in zip(self._reference.slots, self._reference.state_values(), strict=True):
                self._window(self.inputs, slot.offset, slot.shape, slot.dtype).copy_(value)
        arguments: list[dict[str, Any]] = []
        for argument in self._reference.arguments:
            if isinstance(argument, TensorArgument):
                offset = self._base + argument.offset
                shape, dtype = list(argument.shape), dtype_name(argument.dtype)
                arguments.append({"shape": shape, "dtype": dtype, "offset": offset})
            else:
                arguments.append({"value": encode_argument(argument.value)})
        block = {"handle": self.inputs.handle, "size": self.inputs.size}
        return {"inputs": block, "sets": sets, "stride": self._stride, "arguments": arguments}

    def open_outputs(self, size: int) -> dict[str, Any]:
        """New block for outputs; returns the fields of the command."""
        self.outputs = self._allocate(size)
        return {"outputs": {"handle": self.outputs.handle, "size": self.outputs.size}}

    def _allocate(self, size: int) -> Arena:
        arena = self._device.allocate(size)
        self._arenas.append(arena)
        return arena

    def _window(self, arena: Arena, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        count = torch.Size(shape).numel() * dtype.itemsize
        return arena.data[offset : offset + count].view(dtype).view(shape)

    def _shared_inputs(self, index: int) -> list[torch.Tensor]:
        assert self.inputs is not None
        start = self._base + index * self._stride
        return [
            self._window(self.inputs, start + a.offset, a.shape, a.dtype)
            for a in self._reference.arguments
            if isinstance(a, TensorArgument)
        ]

    def fill(self, draws: dict[int, Draw]) -> None:
        """Write the input sets, in an order of our choosing."""
        order = list(draws)
        secrets.SystemRandom().shuffle(order)
        self._private = {}
        keep = len(order) * self._stride <= PRIVATE_SHARE * self._free_bytes
        for index in order:
            arguments = self._reference.make_inputs(draws[index])
            fresh = [x for x in arguments if isinstance(x, torch.Tensor)]
            for shared, made in zip(self._shared_inputs(index), fresh, strict=True):
                shared.copy_(made)
            if keep:
                self._private[index] = arguments

    def private_inputs(self, index: int, draw: Draw) -> list[object]:
        """Arguments of a call in memory that was never exported: kept from the fill, else made anew from the draw."""
        kept = self._private.pop(index, None)
        return self._reference.make_inputs(draw) if kept is None else kept

    def inputs_intact(self, index: int, fresh: Sequence[object]) -> bool:
        """Whether set `index` still holds what was written, `fresh` being a copy made anew."""
        return all(same_bits(s, m) for s, m in zip(*self.input_pairs(index, fresh), strict=True))

    def input_pairs(self, index: int, fresh: Sequence[object]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Tensors of set `index` as a candidate sees them, and as they were made."""
        return self._shared_inputs(index), [x for x in fresh if isinstance(x, torch.Tensor)]

    def poison(self, calls: Iterable[Called]) -> None:
        """Fill the memory of known outputs with random bits: what was not written stays visibly wrong."""
        generator = torch.Generator(device=self._device.torch_device)
        generator.manual_seed(secrets.randbits(63))
        for called in calls:
            for span in self._spans(called):
                self._words(*span).random_(-(2**63), None, generator=generator)  # all 64 bits, the sign among them

    def outputs_of(self, called: Called) -> list[torch.Tensor] | None:
        """Tensors over our memory; None when one does not lie inside its block."""
        tensors = []
        for layout in called.tensors:
            arena = self.inputs if layout.region == Region.INPUTS else self.outputs
            assert arena is not None
            view = view_output(arena, layout)
            if view is None:
                return None
            tensors.append(view)
        return tensors

    def fingerprint(self, calls: Iterable[Called] | None) -> list[int]:
        """Keyed, position-dependent sums of the output memory: of some calls, or of the whole block."""
        assert self.outputs is not None
        if calls is None:
            spans = [(0, self.outputs.size)]
        else:
            spans = [span for called in calls for span in self._spans(called)]
        return torch.stack([self._weigh(self._words(*span)) for span in spans]).tolist() if spans else []

    def _spans(self, called: Called) -> list[tuple[int, int]]:
        return [byte_span(t) for t in called.tensors if t.region == Region.OUTPUTS and 0 not in t.shape]

    def _words(self, start: int, end: int) -> torch.Tensor:
        """The span as eight-byte words, widened to whole words: allocations are at least 64 bytes apart."""
        assert self.outputs is not None
        return self.outputs.data[start // 8 * 8 : min(-(-end // 8) * 8, self.outputs.size)].view(torch.int64)

    def _weigh(self, words: torch.Tensor) -> torch.Tensor:
        """Sum of four-byte words, each times a secret weight, modulo 2**64.

        Eight-byte words would lose bits: their top bit times an even weight is a multiple of 2**64. Of a four-byte word
        every change leaves at least 32 bits of its weight in the sum.
        """
        weights = self._secret_weights()
        if words.is_cuda:
            return fused.weigh(words, weights, self._multiplier)
        total = torch.zeros((), dtype=torch.int64)
        for chunk in torch.split(words.view(torch.int32), weights.numel()):
            total = total * self._multiplier + (chunk * weights[: chunk.numel()]).sum()
        return total

    def _secret_weights(self) -> torch.Tensor:
        if self._weights is None:
            generator = torch.Generator(device=self._device.torch_device)
            generator.manual_seed(secrets.randbits(63))
            self._weights = torch.empty(fused.WEIGHTS, dtype=torch.int64, device=self._device.torch_device)
            self._weights.random_(generator=generator)
        return self._weights

    def choose_spots(self) -> torch.Tensor:
        """Places all over the output memory that nobody can foresee."""
        assert self.outputs is not None
        generator = torch.Generator(device=self._device.torch_device)
        generator.manual_seed(secrets.randbits(63))
        words = self.outputs.size // WORD_BYTES
        return torch.randint(words, (SPOTS,), generator=generator, device=self._device.torch_device)

    def read(self, spots: torch.Tensor) -> torch.Tensor:
        """What the output memory holds there now. Takes some 20 us, so work that goes on cannot get far meanwhile."""
        assert self.outputs is not None
        return self.outputs.data.view(torch.int32)[spots]

    def still_holds(self, spots: torch.Tensor, values: torch.Tensor) -> bool:
        """Whether the output memory holds these values."""
        return torch.equal(self.read(spots), values)

    def close(self) -> None:
        """Give all memory back. The candidate must be gone."""
        self.inputs = self.outputs = self._weights = None
        self._private = {}
        for arena in self._arenas:
            self._device.free(arena)
        self._arenas = []
