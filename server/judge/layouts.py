"""Turns a candidate's description of its outputs into tensors over the judge's own memory, or into a verdict.

Trusted; the descriptions are hostile. Every product is a Python integer, so nothing overflows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernel_env.terms import Verdict

from ..protocol import DTYPES, Called, Region, TensorLayout
from .device import Arena


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """What the reference returns."""

    structure: str
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[torch.dtype, ...]
    aliases_input: bool
    """The reference itself returns memory of an input, so a submission may."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A verdict with text for the agent."""

    verdict: Verdict
    text: str


def dtype_name(dtype: torch.dtype) -> str:
    """Name on the wire, one of `protocol.DTYPES` if the type can be judged."""
    return str(dtype).removeprefix("torch.")


def check_called(called: Called, spec: OutputSpec, must_be_routed: bool) -> Refused | None:
    """Structure, type and shape of one call's outputs; where they lie too if `must_be_routed`."""
    if called.structure != spec.structure:
        return Refused(Verdict.INCORRECT_STRUCTURE, _structure_text(called.structure, spec.structure))
    if len(called.tensors) != len(spec.shapes):  # the nesting is text and may say anything
        return Refused(Verdict.INCORRECT_STRUCTURE, f"expected {len(spec.shapes)} tensors, got {len(called.tensors)}")
    for number, (tensor, shape, dtype) in enumerate(zip(called.tensors, spec.shapes, spec.dtypes, strict=True)):
        where = f"output {number}: " if len(spec.shapes) > 1 else ""
        if tensor.shape != shape:
            return Refused(Verdict.INCORRECT_SHAPE, f"{where}expected shape {list(shape)}, got {list(tensor.shape)}")
        name = DTYPES[tensor.dtype] if tensor.dtype < len(DTYPES) else "another type"
        if name != dtype_name(dtype):
            return Refused(Verdict.INCORRECT_DTYPE, f"{where}expected {dtype_name(dtype)}, got {name}")
        if _overlaps_itself(tensor):
            return Refused(
                Verdict.INCORRECT_STRUCTURE, f"{where}elements share memory (expanded); return a tensor that owns each"
            )
        if tensor.region == Region.INPUTS and not spec.aliases_input:
            return Refused(
                Verdict.INCORRECT_ALIAS, f"{where}the output lies in the memory of an input; return a new tensor"
            )
        if must_be_routed and tensor.region == Region.FOREIGN:
            return Refused(
                Verdict.INCORRECT_ALIAS,
                f"{where}the output is not a new tensor: allocate it in forward with torch.empty or similar "
                "(an output buffer kept from an earlier call, or memory from elsewhere, is refused)",
            )
    return None


def _structure_text(got: str, expected: str) -> str:
    if "S" in got:
        return "return plain torch.Tensor objects, not a subclass or a Parameter"
    if "D" in got:
        return "the output is on the wrong device"
    legend = "T tensor, (..) tuple, [..] list, N None, ? other"
    return f"expected the structure {expected}, got {got[:80]} ({legend})"


def _overlaps_itself(tensor: TensorLayout) -> bool:
    """Whether two indices could name the same element."""
    extent = 1
    for stride, size in sorted(zip(tensor.strides, tensor.shape, strict=True)):
        if size == 0:
            return False
        if size > 1:
            if stride < extent:
                return True
            extent += (size - 1) * stride
    return False


def byte_span(tensor: TensorLayout) -> tuple[int, int]:
    """First byte and one past the last byte the tensor touches in its region."""
    itemsize = getattr(torch, DTYPES[tensor.dtype]).itemsize
    if 0 in tensor.shape:
        return tensor.offset, tensor.offset
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
    return tensor.offset, tensor.offset + (last + 1) * itemsize


def view_output(arena: Arena, tensor: TensorLayout) -> torch.Tensor | None:
    """The tensor over our memory; None when it does not lie inside the block, or names its elements more than once."""
    dtype = getattr(torch, DTYPES[tensor.dtype])
    start, end = byte_span(tensor)
    if end > arena.size or start % dtype.itemsize:
        return None
    # torch multiplies the sizes, and raises if that overflows.
    if math.prod(filter(None, tensor.shape)) > arena.size // dtype.itemsize:
        return None
    if 0 in tensor.shape:
        return torch.empty(tensor.shape, dtype=dtype, device=arena.data.device)
    elements = arena.data[: arena.size // dtype.itemsize * dtype.itemsize].view(dtype)
    return elements.as_strided(tensor.shape, tensor.strides, start // dtype.itemsize)


def calls_share_memory(calls: Sequence[Called]) -> bool:
    """Whether outputs of two different calls overlap."""
    spans = sorted((*byte_span(t), c.call) for c in calls for t in c.tensors if t.region == Region.OUTPUTS)
    reach, owner = -1, -1
    for start, end, call in spans:
        if start < reach and call != owner:
            return True
        if end > reach:
            reach, owner = end, call
    return False
