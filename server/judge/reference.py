"""A task on a device: reference module, layout of inputs, what it returns, and how exact it can be asked to be.

Trusted. Runs the task's own source, which is ours or the operator's. Expected outputs are computed from inputs made
anew from their seed in memory that no candidate can map.

Three constants of the task's module are read, each as the agent sees it:

    FLOPS = batch * n           least floating-point operations, multiply and add counted as two, where torch's counter
                                counts more than an honest kernel needs, or cannot see them
    BYTES = 4 * n               least traffic, where that is not every input and parameter read and every output written
    STRUCTURED_INPUTS = True    floating-point inputs keep the values `get_inputs()` draws
"""

import copy
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

import torch
from torch.utils.flop_counter import FlopCounterMode

from kernel_env.terms import Precision

from ..conventions import silence_dropout
from ..protocol import DTYPES
from .allocations import AllocationCounter
from .compare import BASE, Tolerance, block_elements, error_ratio
from .conditioning import SpecialPlaces, as_double, high_quantile
from .device import Device
from .distributions import Distribution, Draw, redistribute
from .layouts import dtype_name
from .structures import UnsupportedTask, flatten, output_spec

BATCH_NORMS = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm)

ALIGNMENT = 512
"""Bytes. Start of every tensor in an arena; what cudaMalloc guarantees, so no kernel sees worse than in real use."""

CALIBRATION_SEED = 20_240_601
NOISE_MARGIN = {Precision.IEEE: 4.0, Precision.TF32: 4.0, Precision.LOWP: 2.5}
"""Tolerance over the error PyTorch itself makes in the allowed precision. With 4 for 16-bit types, outputs rounded to
eight bits were right in three built-in tasks."""

MAX_FACTOR = 64.0
"""A distribution under which PyTorch's own error needs more than this is ill-conditioned for the task, and not used."""

INPUT_COPIES = 4
"""Shared, private, and room for an output and its comparison."""


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor input, and where it lies in an input set."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    offset: int

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return torch.Size(self.shape).numel() * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """An input that is no tensor: the same in every call."""

    value: object


@dataclass(frozen=True, slots=True)
class StateSlot:
    """One parameter or buffer of the reference, and where its values lie in the arena."""

    name: str
    is_parameter: bool
    shape: tuple[int, ...]
    dtype: torch.dtype
    offset: int


def load_module(source: str, name: str) -> ModuleType:
    """Namespace of a task's source.

    Raises:
        UnsupportedTask: It does not run, or lacks one of the three names.
    """
    module = ModuleType(name)
    try:
        exec(compile(source, f"<task {name}>", "exec"), module.__dict__)  # noqa: S102 - a task is trusted code
    except Exception as error:
        raise UnsupportedTask(f"the task's module does not run: {type(error).__name__}: {error}") from error
    for needed in ("Model", "get_inputs", "get_init_inputs"):
        if not hasattr(module, needed):
            raise UnsupportedTask(f"the task's module has no {needed}")
    return module


@contextmanager
def precision(contract: Precision) -> Iterator[None]:
    """Products in the precision of `contract`; strict fp32 for every contract but TF32."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    allowed = contract is Precision.TF32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


@contextmanager
def _running(what: str) -> Iterator[None]:
    """Report an exception of the task's own code, but a lack of memory or a broken device as what it is."""
    try:
        yield
    except (UnsupportedTask, MemoryError, torch.OutOfMemoryError, torch.AcceleratorError):
        raise
    except Exception as error:
        raise UnsupportedTask(f"{what} failed: {type(error).__name__}: {error}") from error


class Reference:
    """The reference of one task on one device, with everything that is computed once."""

    def __init__(self, task_id: str, source: str, contract: Precision, has_free_inputs: bool, device: Device) -> None:
        """Build and calibrate.

        Raises:
            UnsupportedTask: See its text.
        """
        self.task_id, self.contract, self._device = task_id, contract, device
        self._module = load_module(source, task_id)
        self._free = has_free_inputs and not getattr(self._module, "STRUCTURED_INPUTS", False)
        torch.manual_seed(CALIBRATION_SEED)
        _require_room(self._module, device)
        with _running("get_init_inputs()"):
            self.init = list(self._module.get_init_inputs())
        with _running("Model(*get_init_inputs())"), torch.device(device.torch_device):
            self.model: torch.nn.Module = self._module.Model(*self.init).to(device.torch_device)
        silence_dropout(self.model)
        self._pristine = copy.deepcopy(self.model.state_dict())
        self.arguments, self.set_bytes = self._layout_arguments()
        self.slots, self.state_bytes = self._layout_state()
        first = Draw(CALIBRATION_SEED, Distribution.AS_GIVEN)
        inputs = self.make_inputs(first)
        with (
            _running("Model.forward"),
            FlopCounterMode(display=False) as counter,
            AllocationCounter() as allocations,
            torch.no_grad(),
        ):
            raw = self.model(*inputs)
        self.allocated_bytes: int = allocations.total_bytes
        """Sizes of all tensors that a call makes, those included that it gives back."""

        self.stated_flops = _stated(self._module, "FLOPS")
        self.flops = float(counter.get_total_flops()) if self.stated_flops is None else self.stated_flops
        self.stated_bytes = _stated(self._module, "BYTES")
        self.output_spec = output_spec(raw, inputs)
        self.input_bytes = sum(a.nbytes for a in self.arguments if isinstance(a, TensorArgument))
        self.output_bytes = sum(t.numel() * t.element_size() for t in flatten(raw))
        self.parameter_bytes = sum(p.numel() * p.element_size() for p in self.model.parameters())
        del raw, inputs
        self._special_places = SpecialPlaces()
        self.distributions, self.tolerance = self._calibrate()
        del self._special_places  # as large as the outputs

    def _layout_arguments(self) -> tuple[tuple[TensorArgument | ScalarArgument, ...], int]:
        torch.manual_seed(CALIBRATION_SEED)
        with _running("get_inputs()"), torch.device(self._device.torch_device):
            values = self._module.get_inputs()
        if not isinstance(values, list | tuple):
            raise UnsupportedTask("get_inputs() must return a list")
        arguments: list[TensorArgument | ScalarArgument] = []
        offset = 0
        for value in values:
            if isinstance(value, torch.Tensor):
                if dtype_name(value.dtype) not in DTYPES:
                    raise UnsupportedTask(f"an input has the type {value.dtype}")
                argument = TensorArgument(tuple(value.shape), value.dtype, offset)
                arguments.append(argument)
                offset = _aligned(offset + argument.nbytes)
            elif isinstance(value, int | float | bool | str | None):
                arguments.append(ScalarArgument(value))
            else:
                raise UnsupportedTask(f"an input is a {type(value).__name__}; tensors and scalars can be judged")
        return tuple(arguments), max(offset, ALIGNMENT)

    def _layout_state(self) -> tuple[tuple[StateSlot, ...], int]:
        parameters = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        slots, offset = [], 0
        for name, tensor in self.model.state_dict().items():
            if dtype_name(tensor.dtype) not in DTYPES:
                raise UnsupportedTask(f"parameter {name} has the type {tensor.dtype}")
            slots.append(StateSlot(name, name in parameters, tuple(tensor.shape), tensor.dtype, offset))
            offset = _aligned(offset + tensor.numel() * tensor.element_size())
        return tuple(slots), offset

    def make_inputs(self, draw: Draw) -> list[object]:
        """Arguments of one call, the same for the same draw."""
        if draw.distribution is not Distribution.AS_GIVEN and self._is_redrawn:
            return [self._redraw(argument, draw, position) for position, argument in enumerate(self.arguments)]
        torch.manual_seed(draw.seed)
        with torch.device(self._device.torch_device):
            values = self._module.get_inputs()
        result: list[object] = []
        for position, value in enumerate(values):
            if isinstance(value, torch.Tensor):
                made = value.to(self._device.torch_device).contiguous()
                if self._free and made.is_floating_point():
                    redistribute(made, draw, position)
                result.append(made)
            else:
                scalar = self.arguments[position]
                assert isinstance(scalar, ScalarArgument)
                result.append(scalar.value)
        return result

    @property
    def _is_redrawn(self) -> bool:
        """Whether nothing of what the task's `get_inputs` draws is left when the values are drawn anew."""
        tensors = [a for a in self.arguments if isinstance(a, TensorArgument)]
        return self._free and all(a.dtype.is_floating_point for a in tensors)

    def _redraw(self, argument: TensorArgument | ScalarArgument, draw: Draw, position: int) -> object:
        """A free input without the task's own values, whose drawing costs more than everything else done to it."""
        if isinstance(argument, ScalarArgument):
            return argument.value
        made = torch.empty(argument.shape, dtype=argument.dtype, device=self._device.torch_device)
        redistribute(made, draw, position)
        return made

    def perturb(self, seed: int) -> None:
        """Give the reference other parameters: a skipped affine or a zero bias must show.

        Parameters always; of the buffers only BatchNorm statistics, because others carry meaning (a causal mask).
        """
        self.model.load_state_dict(self._pristine)
        generator = torch.Generator(device=self._device.torch_device)
        generator.manual_seed(seed)

        def noise(tensor: torch.Tensor) -> torch.Tensor:
            return torch.randn(tensor.shape, generator=generator, device=tensor.device, dtype=torch.float32)

        with torch.no_grad():
            for parameter in self.model.parameters():
                if parameter.is_floating_point():
                    rms = float(parameter.float().square().mean().sqrt()) or 1.0
                    parameter.mul_(1.0 + 0.1 * noise(parameter)).add_(
                        (0.1 * rms * noise(parameter)).to(parameter.dtype)
                    )
            for module in self.model.modules():
                if isinstance(module, BATCH_NORMS) and module.running_mean is not None:
                    assert module.running_var is not None
                    module.running_mean.add_(0.1 * noise(module.running_mean))
                    module.running_var.mul_((0.1 * noise(module.running_var)).exp())

    def expected(self, inputs: Sequence[object]) -> list[torch.Tensor]:
        """Outputs in strict precision for `inputs`."""
        with precision(Precision.IEEE), torch.no_grad():
            return flatten(self.model(*inputs))

    def state_values(self) -> list[torch.Tensor]:
        """Values of the slots, in order."""
        state = self.model.state_dict()
        return [state[slot.name] for slot in self.slots]

    def _calibrate(self) -> tuple[tuple[Distribution, ...], Tolerance]:
        """Distributions the task stands, and the tolerance PyTorch's own noise asks for."""
        base = BASE[self.contract]
        usable, factor = [], 1.0
        for distribution in Distribution if self._free else (Distribution.AS_GIVEN,):  # AS_GIVEN first
            self.perturb(CALIBRATION_SEED)
            ratio = self._noise_ratio(Draw(CALIBRATION_SEED, distribution), base)
            margin = NOISE_MARGIN[self.contract]
            if ratio is None or margin * ratio > MAX_FACTOR:
                continue
            usable.append(distribution)
            factor = max(factor, margin * ratio)
        if not usable:
            raise UnsupportedTask("the reference is not finite, or not reproducible in fp64, under any distribution")
        return tuple(usable), Tolerance(base.rtol, base.stol, factor)

    def _noise_ratio(self, draw: Draw, base: Tolerance) -> float | None:
        """PyTorch's own error in the allowed precision over the base bound.

        None when an output is NaN or infinite where it is not for the task's own inputs, or not in double precision.
        Without memory for a double-precision run the base bound stands.
        """
        inputs = self.make_inputs(draw)
        strict = self.expected(inputs)
        if not self._special_places.admit(strict):
            return None
        if 8 * (self.input_bytes + self.output_bytes + self.parameter_bytes) > self._device.free_bytes():
            return 0.0
        with precision(self.contract), torch.no_grad():
            own = flatten(self.model(*inputs))
        try:
            with torch.no_grad():
                exact = flatten(copy.deepcopy(self.model).double()(*as_double(inputs)))
        except (RuntimeError, TypeError, NotImplementedError):  # an operator without a double-precision form
            return 0.0
        worst = 0.0
        for mine, other, oracle in zip(own, strict, exact, strict=True):
            if mine.is_floating_point() and mine.numel() > 0:
                if not torch.equal(torch.isfinite(oracle), torch.isfinite(other)):
                    return None  # an overflow of fp32: another order of the same sums may have a value there
                block = block_elements(tuple(oracle.shape))
                for result in (mine, other):
                    ratio, _ = error_ratio(result.reshape(-1, block), oracle.float().reshape(-1, block), base)
                    worst = max(worst, high_quantile(ratio))
        return worst


def _stated(module: ModuleType, name: str) -> float | None:
    """A number that the task's module states; None if it does not.

    Raises:
        UnsupportedTask: It is no number, or below zero.
    """
    value = getattr(module, name, None)
    if value is None:
        return None
    if not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise UnsupportedTask(f"{name} must be a number, 0 or more")
    return float(value)


def _require_room(module: ModuleType, device: Device) -> None:
    """Refuse a task whose inputs do not fit, before they are made: a host without memory ends more than this task.

    Raises:
        UnsupportedTask: With the sizes.
    """
    try:
        with torch.device("meta"):
            values = module.get_inputs()
        needed = sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))
    except Exception:  # noqa: BLE001 a task may need real values to make its inputs; then they are made
        return
    free = device.free_bytes()
    if INPUT_COPIES * needed > free:
        raise UnsupportedTask(
            f"its inputs take {needed / 1e9:.1f} GB, of which {INPUT_COPIES} copies must fit; "
            f"{free / 1e9:.1f} GB are available on this device"
        )


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def random_seed(source: random.Random | None = None) -> int:
    """63 bits, from the operating system unless a source is given."""
    return (source or random.SystemRandom()).getrandbits(63)
