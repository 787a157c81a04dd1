"""Measures what the device reaches, with no candidate alive. Trusted.

The figures are an envelope: the best of several mixes and shapes. A floor computed from anything less would be beaten
by honest kernels.
"""

import time
from collections.abc import Callable

import torch

from kernel_env.terms import Precision

from . import fused
from .device import Device
from .reference import precision
from .roofline import Ceilings

REPETITIONS = 7

LIMIT_S = 0.3
"""Of one kind of work. A CPU without instructions for bf16 takes seconds for what others do in a millisecond."""


def calibrate(device: Device) -> Ceilings:
    """Ceilings of `device`. Takes about a second."""
    if device.kind == "cuda":
        _warm_kernels(device)
        return Ceilings(_bandwidth(device, 1 << 30), _peaks(device, 8192), _cuda_launch_s())
    return Ceilings(max(_bandwidth(device, n) for n in (1 << 22, 1 << 25)), _peaks(device, 1024), _cpu_launch_s())


def _warm_kernels(device: Device) -> None:
    """Compile the judge's own kernels now rather than in the first evaluation."""
    words = torch.zeros(1 << 14, dtype=torch.int64, device=device.torch_device)
    fused.weigh(words, torch.zeros(fused.WEIGHTS, dtype=torch.int64, device=device.torch_device), 3 << 61 | 1)
    for dtype in fused.DTYPES:
        rows = torch.zeros(fused.LEAST_ROWS, 512, dtype=dtype, device=device.torch_device)
        worst = torch.zeros(2, device=device.torch_device)
        fused.row_errors(rows, rows, 512, 1e-5, 1e-5, worst, words[:1])
    fused.count_changes(words, words, words[:1])


def _best(device: Device, work: Callable[[], object], inner: int = 4) -> float:
    """Least seconds of one `work` over a single run and several of `inner`, as many as begin within `LIMIT_S`."""

    def mean_s(count: int) -> float:
        device.synchronize()
        start = time.perf_counter_ns()
        for _ in range(count):
            work()
        device.synchronize()
        return (time.perf_counter_ns() - start) * 1e-9 / count

    end = time.monotonic() + LIMIT_S
    best = mean_s(1)
    for _ in range(REPETITIONS):
        if time.monotonic() >= end:
            break
        best = min(best, mean_s(inner))
    return best


def _bandwidth(device: Device, elements: int) -> float:
    """Best of read, write and copy over fp32 arrays, 1e9 bytes per second."""
    source = torch.ones(elements, device=device.torch_device)
    target = torch.empty_like(source)
    nbytes = 4 * elements
    mixes: list[tuple[int, Callable[[], object]]] = [
        (2 * nbytes, lambda: target.copy_(source)),
        (2 * nbytes, lambda: torch.relu(source)),
        (nbytes, lambda: target.fill_(1.0)),
        (nbytes, source.sum),
        (nbytes, source.amax),
        (3 * nbytes, lambda: torch.add(source, target, out=target)),
    ]
    return max(moved / _best(device, work) for moved, work in mixes) / 1e9


def _peaks(device: Device, n: int) -> dict[str, float]:
    """Best square product per contract, 1e12 per second."""
    peaks = {}
    for contract in Precision:
        dtype = torch.bfloat16 if contract is Precision.LOWP else torch.float32
        best = 0.0
        for size in (n // 2, n):
            a = torch.randn(size, size, device=device.torch_device).to(dtype)
            b = torch.randn(size, size, device=device.torch_device).to(dtype)
            with precision(contract):
                product_s = _best(device, lambda a=a, b=b: a @ b, inner=2)  # type: ignore[misc]
            best = max(best, 2 * size**3 / product_s / 1e12)
            if product_s > LIMIT_S / 8:  # the larger one takes eight times as long
                break
        peaks[contract.value] = best
    # A looser contract can never be slower than a stricter one: it may use the same units.
    peaks[Precision.TF32.value] = max(peaks[Precision.TF32.value], peaks[Precision.IEEE.value])
    peaks[Precision.LOWP.value] = max(peaks[Precision.LOWP.value], peaks[Precision.TF32.value])
    return peaks


def _cuda_launch_s() -> float:
    """Seconds per node in a graph of dependent launches of an almost empty kernel."""
    nodes = 1000
    cell = torch.zeros(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(nodes):
            cell.add_(1.0)
    best = float("inf")
    for _ in range(REPETITIONS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) * 1e-3 / nodes)
    return best


def _cpu_launch_s() -> float:
    """Seconds of the cheapest call of a compiled function from Python."""
    count = 10_000
    best = float("inf")
    for _ in range(REPETITIONS):
        start = time.perf_counter_ns()
        for _ in range(count):
            time.perf_counter_ns()
        best = min(best, (time.perf_counter_ns() - start) * 1e-9 / count)
    return best
