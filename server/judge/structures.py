"""Nested outputs and arguments of a task: tensors, notation on the wire, and what cannot be judged. Trusted."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .layouts import OutputSpec


class UnsupportedTask(Exception):
    """The task cannot be judged as it is written; the text says why."""


def flatten(output: object) -> list[torch.Tensor]:
    """Tensors of an output in order.

    Raises:
        UnsupportedTask: It holds something else.
    """
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, list | tuple):
        return [tensor for item in output for tensor in flatten(item)]
    if isinstance(output, dict):
        return [tensor for item in output.values() for tensor in flatten(item)]
    if output is None:
        return []
    raise UnsupportedTask(f"the reference returns a {type(output).__name__}")


def structure_of(output: object) -> str:
    """Nesting in the notation of `protocol.Called.structure`."""
    if isinstance(output, torch.Tensor):
        return "T"
    if output is None:
        return "N"
    if isinstance(output, Mapping):
        return "{" + ",".join(f"{key!r}:{structure_of(value)}" for key, value in output.items()) + "}"
    if isinstance(output, list | tuple):
        inner = ",".join(structure_of(item) for item in output)
        return f"({inner})" if isinstance(output, tuple) else f"[{inner}]"
    raise UnsupportedTask(f"the reference returns a {type(output).__name__}")


def output_spec(output: object, inputs: Sequence[object]) -> OutputSpec:
    """What a submission has to return, read off an output of the reference for `inputs`."""
    tensors = flatten(output)
    storages = {x.untyped_storage().data_ptr() for x in inputs if isinstance(x, torch.Tensor)}
    return OutputSpec(
        structure=structure_of(output),
        shapes=tuple(tuple(t.shape) for t in tensors),
        dtypes=tuple(t.dtype for t in tensors),
        aliases_input=any(t.untyped_storage().data_ptr() in storages for t in tensors),
    )


def encode_argument(value: object) -> Any:
    """Constructor argument as JSON, for `server.candidate.runtime.decode_arguments`.

    Raises:
        UnsupportedTask: It is none of the plain types.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [encode_argument(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode_argument(item) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode_argument(item) for key, item in value.items()}}
    raise UnsupportedTask(f"get_init_inputs() holds a {type(value).__name__}")
