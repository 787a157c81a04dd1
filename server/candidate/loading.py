"""Imports a submission, constructs its module and gives it the judge's parameters. Untrusted side.

Failures leave as `CandidateFailure` with text for the agent: lines of the submission only, bounded, no host path.
"""

import importlib.util
import re
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import torch

from kernel_env.native import NativeCompileError

from ..conventions import silence_dropout
from ..protocol import DTYPES, Failure

MODULE_NAME = "submission"
_MAX_LINE_CHARS = 2000


class CandidateFailure(Exception):
    """A command of the judge failed because of the submission."""

    def __init__(self, failure: Failure, text: str) -> None:
        """Keep the kind beside the text."""
        super().__init__(text)
        self.failure = failure
        self.text = text


@dataclass(frozen=True, slots=True)
class ParameterSlot:
    """One parameter or buffer of the reference, and where its values lie."""

    name: str
    is_parameter: bool
    shape: tuple[int, ...]
    dtype: torch.dtype
    offset: int


def load_model(path: str, entry: str, init: Sequence[object], device: str) -> torch.nn.Module:
    """Import `path`, which holds real source so that Triton finds it, and construct `entry(*init)` on `device`.

    Raises:
        CandidateFailure: Import or construction failed; the kind says which.
    """
    module = ModuleType(MODULE_NAME)
    try:
        spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
        if spec is None or spec.loader is None:
            raise ImportError("no loader for the submission")
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE_NAME] = module
        spec.loader.exec_module(module)
    except BaseException as error:  # SystemExit at import is the submission's fault too
        raise failure_of(error, path) from None
    constructor = getattr(module, entry, None)
    if not callable(constructor):
        raise CandidateFailure(Failure.CONSTRUCTOR, f"the module defines no class {entry}")
    try:
        model = constructor(*init)
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"{entry} must be a torch.nn.Module, got {type(model).__name__}")
        silence_dropout(model)
        return model.to(device)
    except BaseException as error:
        failure = failure_of(error, path)
        kind = Failure.CONSTRUCTOR if failure.failure is Failure.EXCEPTION else failure.failure
        raise CandidateFailure(kind, f"{entry}(*get_init_inputs()) failed: {failure.text}") from None


def bind_parameters(
    model: torch.nn.Module, slots: Sequence[ParameterSlot], values: Sequence[torch.Tensor]
) -> tuple[int, ...]:
    """Give `model` the reference's values: by name and shape, else by position, shape and dtype.

    Returns:
        Indices of reference parameters that found no partner. Buffers without a partner are not an error: a submission
        may do without one that its forward does not read.
    """
    own = {name: (tensor, isinstance(tensor, torch.nn.Parameter)) for name, tensor in _named_state(model)}
    state: dict[str, torch.Tensor] = {}
    unmatched: list[int] = []
    for index, (slot, value) in enumerate(zip(slots, values, strict=True)):
        partner = own.get(slot.name)
        if partner is not None and tuple(partner[0].shape) == slot.shape:
            state[slot.name] = value
        elif slot.is_parameter:
            unmatched.append(index)
    free = [(name, tensor) for name, (tensor, is_parameter) in own.items() if is_parameter and name not in state]
    missing: list[int] = []
    for index in unmatched:
        slot = slots[index]
        position = next(
            (i for i, (_, t) in enumerate(free) if tuple(t.shape) == slot.shape and t.dtype == slot.dtype), None
        )
        if position is None:
            missing.append(index)
        else:
            state[free.pop(position)[0]] = values[index]
    if state and not missing:
        model.load_state_dict(state, strict=False)
    return tuple(missing)


def _named_state(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Parameters and persistent buffers in registration order, as `state_dict` names them."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    return [(name, parameters.get(name, tensor)) for name, tensor in model.state_dict(keep_vars=True).items()]


def failure_of(error: BaseException, path: str) -> CandidateFailure:
    """What to report for an exception that escaped the submission."""
    kind = Failure.EXCEPTION
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        kind = Failure.OUT_OF_MEMORY
    elif _is_compilation(error):
        kind = Failure.COMPILATION
    return CandidateFailure(kind, describe(error, path))


def _is_compilation(error: BaseException) -> bool:
    """Whether a compiler refused the code: ours, Triton's, or torch's extension builder."""
    if isinstance(error, NativeCompileError) or type(error).__module__.startswith("triton.compiler"):
        return True
    return isinstance(error, RuntimeError) and "Error building extension" in _text_of(error)


def describe(error: BaseException, path: str) -> str:
    """Type, text and the lines of the submission the exception passed through."""
    lines = [
        f"  line {frame.lineno}, in {frame.name}: {(frame.line or '').strip()[:200]}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path
    ]
    text = _text_of(error)
    head = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return re.sub(r"(?<!\w)(/[\w.+-]+)+/", "", "\n".join([head, *lines[-8:]]))


def _text_of(error: BaseException) -> str:
    try:
        lines = str(error).splitlines()
    except BaseException:  # __str__ is the submission's own code
        return ""
    return "\n".join(line[:_MAX_LINE_CHARS] for line in lines)


def dtype_of(name: str) -> torch.dtype:
    """Element type by its name on the wire.

    Raises:
        ValueError: Not one of `DTYPES`.
    """
    if name not in DTYPES:
        raise ValueError(f"unknown element type {name!r}")
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype
