"""How much of a call is the work of the submission's own kernels. Untrusted side: a claim.

On a CPU the operators of PyTorch are timed as they run. On a GPU they run later than they are called, so a call is
captured twice, as it is and with the submission's kernels left out: what the second one still takes is PyTorch's.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_env.compilers import LIBRARY_FOLDER
from kernel_env.native import NativeFunction

from ..operators import is_arithmetic

ROUNDS = 8
"""Calls, of which the shortest counts on a GPU, and the middle one on a CPU."""

LONGEST_S, MOST_ROUNDS = 0.1, 64
"""Short calls are made more often: a busy host disturbs for milliseconds at a time."""


class OperatorClock(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Context that sums up the seconds spent in operators of PyTorch that compute."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seconds = 0.0
        self.operators = 0
        """Those that do not compute count too: each is a detour through this clock."""

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
        self.operators += 1
        return result


Launch: TypeAlias = Callable[..., object]


class Launches:
    """The submission's kernels while somebody looks at their launches: those of Triton and of `kernel_env.native`."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.names: set[str] = set()

    def leave_out(self) -> AbstractContextManager[None]:
        """Context in which a launch does nothing but count."""

        def leaving_out(_: Launch) -> Launch:
            def nothing(*_: object, **__: object) -> None:
                self.count += 1

            return nothing

        return self._replaced(leaving_out)

    def noted(self) -> AbstractContextManager[None]:
        """Context in which the names of what is launched are collected, `native.run` or `triton.kernel`."""

        def noting(launch: Launch) -> Launch:
            def note(kernel: Any, *arguments: object, **options: object) -> object:
                family = "native" if isinstance(kernel, NativeFunction) else "triton"
                self.names.add(f"{family}.{getattr(kernel, '__name__', '?')}")
                return launch(kernel, *arguments, **options)

            return note

        return self._replaced(noting)

    def timed(self, pytorch_s: Callable[[], float]) -> AbstractContextManager[None]:
        """Context in which the seconds in launches are summed up, less those that `pytorch_s` says are PyTorch's."""

        def timing(launch: Launch) -> Launch:
            def timed(*arguments: object, **options: object) -> object:
                before_s, start = pytorch_s(), time.perf_counter()
                try:
                    return launch(*arguments, **options)
                finally:
                    self.seconds += time.perf_counter() - start - (pytorch_s() - before_s)
                    self.count += 1

            return timed

        return self._replaced(timing)

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


def share_by_clock(call: Callable[[], object], *, only_launches: bool) -> float:
    """Share of a call's work on the CPU that the submission's kernels do, 0 to 1.

    Args:
        call: A call of the module.
        only_launches: Whether launches are all of its own work, if there are any; else all of the time outside of
            PyTorch's operators is.
    """
    detour_s = min(_Round(torch.empty(0).neg_).outside_s for _ in range(MOST_ROUNDS))
    shares: list[float] = []
    stop_at = time.perf_counter() + LONGEST_S
    while len(shares) < ROUNDS or (len(shares) < MOST_ROUNDS and time.perf_counter() < stop_at):
        done = _Round(call)
        launched_only = only_launches and done.launches > 0
        own_s = done.launched_s if launched_only else done.outside_s - done.operators * detour_s
        shares.append(max(own_s, 0.0) / max(max(own_s, 0.0) + done.pytorch_s, 1e-9))
    # Both parts are of the same call: a host that is busy for a while prolongs them alike.
    return median(shares)


class _Round:
    """One call by the clock."""

    def __init__(self, call: Callable[[], object]) -> None:
        with OperatorClock() as clock:
            launches = Launches()
            with launches.timed(lambda: clock.seconds):
                whole_s = _seconds(call)
        self.pytorch_s, self.operators = clock.seconds, clock.operators
        self.outside_s = whole_s - clock.seconds
        self.launches, self.launched_s = launches.count, launches.seconds


def share_by_absence(run: Callable[[], Callable[[], None] | None]) -> float | None:
    """Share of a captured call that goes when the submission's kernels are left out, 0 to 1; None if unknown.

    Args:
        run: Captures a call and returns what launches it and waits for it; None when it cannot be captured again.
    """
    whole = run()
    launches = Launches()
    with launches.leave_out():
        rest = run()
    if whole is None or rest is None or launches.count == 0:
        return None
    whole_s, rest_s = _shortest_s(whole), _shortest_s(rest)
    empty_s = _shortest_s(torch.cuda.synchronize)  # the wait itself is nobody's work
    return min(max(1.0 - max(rest_s - empty_s, 0.0) / max(whole_s - empty_s, 1e-9), 0.0), 1.0)


def has_other_kernels(scratch: str) -> bool:
    """Whether libraries were built and loaded whose launches nobody here knows: torch extensions, or built by hand."""
    own = (f"/{LIBRARY_FOLDER}/", "/triton/")
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    built = {line.split(maxsplit=5)[5] for line in maps.splitlines() if f" {scratch}/" in line and ".so" in line}
    return any(not any(part in path for part in own) for path in built) or "cuda.bindings.nvrtc" in sys.modules


def _shortest_s(work: Callable[[], object]) -> float:
    return min(_seconds(work) for _ in range(ROUNDS))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
