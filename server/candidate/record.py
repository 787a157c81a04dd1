"""Which operators of PyTorch a call runs, however they are spelled in its source. Untrusted side: a claim.

Two witnesses. A dispatch mode sees what the calling thread dispatches, but nothing inside of an operator that the
submission defined: there it is off. PyTorch's profiler sees every thread and the inside of such operators.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._C import DispatchKey
from torch.utils._python_dispatch import TorchDispatchMode

from ..operators import is_arithmetic

_ATEN = "aten::"


class OperatorRecord(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Context that collects the names of the operators dispatched in it, `aten.add.Tensor` and the like."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def around(self, call: Callable[[int], object]) -> Callable[[int], object]:
        """`call`, recorded."""

        def recorded(index: int) -> object:
            with self:
                return call(index)

        return recorded

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Do not shield the hook from torch.compile: that alone imports the whole compiler, which takes a second."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note the name, then run the operator."""
        self.names.add(str(func))
        return func(*args, **(kwargs or {}))


def profiled(call: Callable[[], object]) -> set[str]:
    """Run `call`; names of the operators any thread ran meanwhile, without overloads: `aten.add`.

    Those that only call others are left out, since the others are there, as is what an operator that moves or allocates
    does inside of itself: `repeat` adds indices. Empty where this PyTorch profiles otherwise.
    """
    try:
        # The parts below `torch.profiler.profile`, which would build an object per event.
        from torch._C._profiler import _ExperimentalConfig
        from torch.autograd.profiler import profile

        everywhere = _ExperimentalConfig(profile_all_threads=True)
        profiler = profile(use_cpu=True, use_device=None, experimental_config=everywhere)
        profiler.__enter__()  # type: ignore[no-untyped-call]
    except Exception:
        call()
        return set()
    try:
        call()
    finally:
        profiler.__exit__(None, None, None)  # type: ignore[no-untyped-call]
    events = profiler.kineto_results.events() if profiler.kineto_results is not None else []
    return {f"aten.{name}" for name in _outside_of_glue(events) if not _only_calls_others(name)}


def _outside_of_glue(events: Iterable[Any]) -> set[str]:
    """Names of the operators that do not lie in the time of one that computes nothing, in the same thread."""
    operators = [event for event in events if event.name().startswith(_ATEN)]
    names = set()
    glue_end_ns: dict[int, int] = {}
    for event in sorted(operators, key=lambda event: (event.start_ns(), -event.duration_ns())):
        name, thread, start_ns = event.name().removeprefix(_ATEN), event.start_thread_id(), event.start_ns()
        if start_ns < glue_end_ns.get(thread, start_ns):
            continue
        names.add(name)
        if not is_arithmetic(f"aten.{name}"):
            glue_end_ns[thread] = start_ns + event.duration_ns()
    return names


@cache
def _only_calls_others(name: str) -> bool:
    """Whether every form of an operator is made of other operators on every device, as `reshape` is."""
    key = DispatchKey.CompositeImplicitAutograd
    try:
        packet = getattr(torch.ops.aten, name)
        forms = [getattr(packet, overload) for overload in packet.overloads()]
    except AttributeError:
        return False
    return all(_has_kernel(form, key) for form in forms)


def _has_kernel(form: Any, key: Any) -> bool:
    try:
        return bool(form.has_kernel_for_dispatch_key(key))
    except RuntimeError:  # a form that exists for scripts alone
        return True
