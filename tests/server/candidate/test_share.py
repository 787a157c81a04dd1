"""How much of a call own kernels do: by the clock of PyTorch's operators, and by leaving the kernels out."""

import ctypes
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_env import native
from kernel_env.native import NativeFunction
from server.candidate.share import Launches, has_other_kernels, share_by_absence, share_by_clock
from server.operators import is_arithmetic
from server.sandbox import environ

X = torch.randn(1024, 1024)


class Clock:
    """Stands still but while a kernel works: the machine's load is none of these tests' business."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s


CLOCK = Clock()


def works(seconds: float) -> None:
    """A kernel of the submission's own."""
    CLOCK.now_s += seconds


class SlowProduct(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Operators of PyTorch that compute take a millisecond."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if is_arithmetic(str(func)):
            CLOCK.now_s += 0.001
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("server.candidate.share.time", CLOCK)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    with SlowProduct():  # type: ignore[no-untyped-call]
        yield


def test_call_without_pytorch_is_all_its_own() -> None:
    assert share_by_clock(lambda: works(0.002), only_launches=True) == 1.0


def test_allocation_and_views_count_as_own() -> None:
    def call() -> None:
        torch.empty_like(X).view(-1)
        works(0.002)

    assert share_by_clock(call, only_launches=True) == 1.0


def test_call_that_is_all_pytorch_has_no_share() -> None:
    assert share_by_clock(lambda: torch.tanh(X @ X), only_launches=True) == 0.0


def test_share_is_what_is_left_of_the_time() -> None:
    def call() -> None:
        torch.tanh(X @ X)
        works(0.002)

    assert share_by_clock(call, only_launches=True) == pytest.approx(0.5)


@pytest.mark.parametrize(("only_launches", "share"), [(True, 1 / 3), (False, 3 / 5)])
def test_launches_are_the_own_work_where_there_are_no_others(only_launches: bool, share: float) -> None:
    """What a call takes in Python is nobody's work; but a library that nobody here knows may be launched in there."""
    launch = NativeFunction("works", (), lambda: works(0.001), on_cuda=False)

    def call() -> None:
        torch.tanh(X @ X)
        works(0.002)
        launch()

    assert share_by_clock(call, only_launches=only_launches) == pytest.approx(share)


def kernel() -> NativeFunction:
    return NativeFunction("nothing", (), ctypes.CDLL(None).sync, on_cuda=False)


def test_launches_are_left_out_and_come_back() -> None:
    launches, function = Launches(), kernel()
    before = NativeFunction.__call__
    with launches.leave_out():
        function(1, 2, 3)  # wrong arguments: nothing looks at them
    assert launches.count == 1
    assert NativeFunction.__call__ is before
    with pytest.raises(TypeError):
        function(1)


def captured(own_s: float, rest_s: float) -> Callable[[], Callable[[], None] | None]:
    """Stands in for a capture: what it returns takes as long as the kernels that were not left out."""
    function = kernel()

    def run() -> Callable[[], None]:
        launches = NativeFunction.__call__
        function()
        left_out = launches is not ORIGINAL
        return lambda: works(rest_s + (0.0 if left_out else own_s))

    return run


ORIGINAL = NativeFunction.__call__


@pytest.mark.parametrize(("own_s", "rest_s", "share"), [(0.002, 0.002, 0.5), (0.004, 0.0, 1.0), (0.0, 0.004, 0.0)])
def test_share_is_what_goes_with_the_kernels(own_s: float, rest_s: float, share: float) -> None:
    assert share_by_absence(captured(own_s, rest_s)) == pytest.approx(share)


def test_share_is_unknown_without_a_launch_or_a_capture() -> None:
    assert share_by_absence(lambda: lambda: works(0.001)) is None
    assert share_by_absence(lambda: None) is None


SOURCE = 'extern "C" void nothing(int64_t n) {}'


def test_libraries_whose_launches_are_known_are_no_other_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a candidate's environment puts them."""
    folder = Path(environ.environment(str(tmp_path), "cpu", cores=1)["TORCH_EXTENSIONS_DIR"])
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(folder))
    native.load(SOURCE, {"nothing": "int64_t n"}).nothing(1)
    assert not has_other_kernels(str(tmp_path))
    (built,) = folder.rglob("*.so")
    other = shutil.copy(built, tmp_path / "by_hand.so")
    assert not has_other_kernels(str(tmp_path))
    ctypes.CDLL(str(other))
    assert has_other_kernels(str(tmp_path))


def test_libraries_of_nobody_are_no_other_kernels() -> None:
    assert not has_other_kernels("/no/such/folder")
