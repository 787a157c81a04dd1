"""Answers to a task that need no kernel, or compute less than was asked for; none may be right. Needs torch.

For the programs that examine tasks. Judges with the judge's own comparison and the task's own tolerance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

from kernel_env.terms import Precision

from ..judge.compare import compare
from ..judge.distributions import Draw
from ..judge.reference import Reference

Tensors: TypeAlias = list[torch.Tensor]

LARGEST_E4M3 = 448.0
TF32_DROPPED_BITS = 13

_NO_SUCH_INPUT = "no input has the shape and type of the output"
_NO_FLOATS = "no input is floating-point"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the reference, and what came out of an earlier one on other inputs."""

    reference: Reference
    inputs: Sequence[object]
    expected: Tensors
    earlier: Tensors


Answer: TypeAlias = Callable[[Call], Tensors | str]
"""Gives outputs, or says why it cannot."""


def shortcuts_that_pass(reference: Reference, seed: int, other_seed: int) -> dict[str, list[str] | str]:
    """Distributions under which each answer is right; a text where the answer cannot be given.

    Args:
        reference: With its parameters perturbed.
        seed: Of the inputs.
        other_seed: Of those of the earlier call.
    """
    answers = ANSWERS | (IEEE_ANSWERS if reference.contract is Precision.IEEE else {})
    right: dict[str, list[str] | str] = {name: [] for name in answers}
    for distribution in reference.distributions:
        earlier = reference.expected(reference.make_inputs(Draw(other_seed, distribution)))
        inputs = reference.make_inputs(Draw(seed, distribution))
        kept = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]  # forward may write to its own
        call = Call(reference, kept, reference.expected(inputs), earlier)
        for name, answer in answers.items():
            given, found = answer(call), right[name]
            if isinstance(given, str):
                right[name] = given
            elif isinstance(found, list) and _is_right(given, call):
                found.append(distribution.value)
    return right


def _is_right(given: Tensors, call: Call) -> bool:
    pairs = zip(given, call.expected, strict=True)
    return all(compare(got, want, call.reference.tolerance).is_right for got, want in pairs)


def _zeros(call: Call) -> Tensors:
    return [torch.zeros_like(want) for want in call.expected]


def _constant(call: Call) -> Tensors:
    """The mean of an output for other inputs."""
    return [_filled(want, was.double().mean()) for was, want in zip(call.earlier, call.expected, strict=True)]


def _row_means(call: Call) -> Tensors:
    """In each row the mean of what is right there."""
    return [
        _filled(want, want.double().mean(dim=-1, keepdim=True)) if want.dim() else _filled(want, want.double() * 0)
        for want in call.expected
    ]


def _filled(like: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return value.to(like.dtype).expand(like.shape).contiguous() if like.numel() else like


def _an_input(call: Call) -> Tensors | str:
    """For each output the first input of its shape and type."""
    found = []
    for want in call.expected:
        like = [
            x for x in call.inputs if isinstance(x, torch.Tensor) and (x.shape, x.dtype) == (want.shape, want.dtype)
        ]
        if not like:
            return _NO_SUCH_INPUT
        found.append(like[0])
    return found


def _earlier(call: Call) -> Tensors:
    return call.earlier


def _eight_bits(call: Call) -> Tensors:
    """What is right, rounded to eight bits with one scale for each output."""
    return [_in_e4m3(want) for want in call.expected]


def _in_e4m3(value: torch.Tensor) -> torch.Tensor:
    if not value.is_floating_point() or value.numel() == 0:
        return value
    finite = torch.nan_to_num(value.float(), nan=0.0, posinf=0.0, neginf=0.0)
    scale = finite.abs().amax().clamp(min=1e-30) / LARGEST_E4M3
    rounded = (finite / scale).to(torch.float8_e4m3fn).float() * scale
    return torch.where(torch.isfinite(value), rounded.to(value.dtype), value)


def _half_of_the_inputs(call: Call) -> Tensors | str:
    """What comes of inputs whose last dimension is zero in its second half: a sum that was cut short."""
    return _with_inputs(call, lambda x: torch.cat([x[..., : x.shape[-1] // 2], 0 * x[..., x.shape[-1] // 2 :]], dim=-1))


def _inputs_in_tf32(call: Call) -> Tensors | str:
    """What comes of fp32 inputs that were rounded to TF32, where the contract forbids that."""

    def rounded(x: torch.Tensor) -> torch.Tensor:
        if x.dtype is not torch.float32:
            return x
        bits = x.contiguous().view(torch.int32)
        half = 1 << (TF32_DROPPED_BITS - 1)
        return ((bits + half) >> TF32_DROPPED_BITS << TF32_DROPPED_BITS).view(torch.float32)

    return _with_inputs(call, rounded)


def _with_inputs(call: Call, change: Callable[[torch.Tensor], torch.Tensor]) -> Tensors | str:
    floats = [isinstance(x, torch.Tensor) and x.is_floating_point() and x.dim() > 0 for x in call.inputs]
    if not any(floats):
        return _NO_FLOATS
    changed: list[object] = []
    for is_float, value in zip(floats, call.inputs, strict=True):
        if is_float and isinstance(value, torch.Tensor):
            wide = value.float() if value.dtype.itemsize == 1 else value  # torch cannot cut eight-bit floats
            changed.append(change(wide).to(value.dtype))
        else:
            changed.append(value)
    return call.reference.expected(changed)


ANSWERS: dict[str, Answer] = {
    "zeros": _zeros,
    "constant": _constant,
    "row means": _row_means,
    "input": _an_input,
    "earlier output": _earlier,
    "eight bits": _eight_bits,
    "half of the inputs": _half_of_the_inputs,
}

IEEE_ANSWERS: dict[str, Answer] = {"inputs in TF32": _inputs_in_tf32}
