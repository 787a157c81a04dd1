"""How much of a call is the work of the submission's own kernels. Untrusted side: a claim.

On a CPU the operators of PyTorch are timed as they run. On a GPU they run later than they are called, so a call is
captured twice, as it is and with the submission's kernels left out: what the second one still takes is PyTorch's.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_env.native import NativeFunction

from ..operators import is_arithmetic

ROUNDS = 8
"""Calls, of which the shortest counts."""


class OperatorClock(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Context that sums up the seconds spent in operators of PyTorch that compute."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seconds = 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """As in `record.OperatorRecord`."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operator, by the clock if it computes."""
        start = time.perf_counter()
        result = func(*args, **(kwargs or {}))
        if is_arithmetic(str(func)):
            self.seconds += time.perf_counter() - start
        return result


def share_by_operators(call: Callable[[], object]) -> float:
    """Share of a call's time on the CPU that is not spent in operators of PyTorch, 0 to 1."""
    pytorch_s = float("inf")
    for _ in range(ROUNDS):
        with OperatorClock() as clock:
            call()
        pytorch_s = min(pytorch_s, clock.seconds)
    # Without the clock, which costs as much as a small kernel.
    return min(max(1.0 - pytorch_s / _shortest_s(call), 0.0), 1.0)


Launch: TypeAlias = Callable[..., object]


class Launches:
    """The submission's kernels while somebody looks at their launches: those of Triton and of `kernel_env.native`."""

    def __init__(self) -> None:
        self.left_out = 0
        self.names: set[str] = set()

    def leave_out(self) -> AbstractContextManager[None]:
        """Context in which a launch does nothing but count."""

        def nothing(_: Launch) -> Launch:
            def count(*_: object, **__: object) -> None:
                self.left_out += 1

            return count

        return self._replaced(nothing)

    def noted(self) -> AbstractContextManager[None]:
        """Context in which the names of what is launched are collected, `native.run` or `triton.kernel`."""

        def noting(launch: Launch) -> Launch:
            def note(kernel: Any, *arguments: object, **options: object) -> object:
                family = "native" if isinstance(kernel, NativeFunction) else "triton"
                self.names.add(f"{family}.{getattr(kernel, '__name__', '?')}")
                return launch(kernel, *arguments, **options)

            return note

        return self._replaced(noting)

    @contextmanager
    def _replaced(self, by: Callable[[Launch], Launch]) -> Iterator[None]:
        entries: list[tuple[Any, str]] = [(NativeFunction, "__call__")]
        for module, kind in (
            ("triton.runtime.jit", "JITFunction"),
            ("triton.runtime.interpreter", "InterpretedFunction"),
        ):
            if module in sys.modules:
                entries.append((getattr(sys.modules[module], kind), "run"))
        before = [(owner, name, getattr(owner, name)) for owner, name in entries]
        try:
            for owner, name, original in before:
                setattr(owner, name, by(original))
            yield
        finally:
            for owner, name, original in before:
                setattr(owner, name, original)


def share_by_absence(run: Callable[[], Callable[[], None] | None]) -> float | None:
    """Share of a captured call that goes when the submission's kernels are left out, 0 to 1; None if unknown.

    Args:
        run: Captures a call and returns what launches it and waits for it; None when it cannot be captured again.
    """
    whole = run()
    launches = Launches()
    with launches.leave_out():
        rest = run()
    if whole is None or rest is None or launches.left_out == 0:
        return None
    whole_s, rest_s = _shortest_s(whole), _shortest_s(rest)
    empty_s = _shortest_s(torch.cuda.synchronize)  # the wait itself is nobody's work
    return min(max(1.0 - max(rest_s - empty_s, 0.0) / max(whole_s - empty_s, 1e-9), 0.0), 1.0)


def has_other_kernels(scratch: str) -> bool:
    """Whether libraries were built and loaded whose launches nobody here knows: torch extensions, or built by hand."""
    own = ("/kernel_env_native-", "/triton/")
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    built = {line.split(maxsplit=5)[5] for line in maps.splitlines() if f" {scratch}/" in line and ".so" in line}
    return any(not any(part in path for part in own) for path in built) or "cuda.bindings.nvrtc" in sys.modules


def _shortest_s(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
