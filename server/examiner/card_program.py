"""Program of `tasks audit`: measures one task after the other on a device, and says what can be judged.

A process of its own, never loaded by the server. Runs the tasks' source, which is the operator's, and no submission.
One JSON request per line on standard input, one JSON answer per line on standard output; what the tasks print goes
nowhere. Times are those of a plain process, by its own clock or CUDA events: they show which floors are too high, and
nothing is paid for them.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..judge.calibrate import calibrate
from ..judge.compare import compare
from ..judge.device import Device, open_device
from ..judge.distributions import Distribution, Draw
from ..judge.floors import floor_of
from ..judge.reference import Reference, precision
from ..judge.roofline import Ceilings
from ..judge.structures import flatten
from .trial_program import OTHER_SEED, SEED, examine

LENGTH_S = 0.03
"""Least length of a repetition."""

REPETITIONS = 5
COLD_FACTOR = 3
"""Inputs of all calls of a repetition over the last cache: none is found there."""

MOST_SETS = 32


def main() -> None:
    """Answer requests until there are no more."""
    answer_fd = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with os.fdopen(answer_fd, "w", encoding="utf-8") as answers:
        device = open_device(sys.argv[1], int(sys.argv[2]))
        ceilings = calibrate(device)
        hello = {"device": device.name, "torch": torch.__version__, "bandwidth_gb_s": ceilings.bandwidth_gb_s}
        _say(answers, hello | {"peak_tflop_s": ceilings.peak_tflop_s, "launch_us": 1e6 * ceilings.launch_s})
        for line in sys.stdin:
            _say(answers, card(json.loads(line), device, ceilings))


def _say(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def card(request: dict[str, Any], device: Device, ceilings: Ceilings) -> dict[str, Any]:
    """What there is to say about a task.

    Args:
        request: `task_id`, `source`, `precision`, `has_free_inputs`; `compile`: whether to time `torch.compile` too.
    Returns:
        What `examine` finds, and, if the task can be judged: `input_bytes`, `output_bytes`, `parameter_bytes`, `flops`,
        `stated` (which of flops and bytes the task states), `floor_ms`, `bound`, `terms_ms`, `output_rms`,
        `own_output_fails` (distributions under which PyTorch's own output in the allowed precision is wrong),
        `peak_bytes`, `eager_ms`, `graph_ms` (null where it cannot be captured), `compiled_ms` (null or a text).
    """
    with_compile = request.pop("compile")
    if device.kind == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def measured(reference: Reference) -> dict[str, Any]:
        return _facts(reference, device, ceilings) | _times(reference, device, with_compile=with_compile)

    start = time.monotonic()
    found = examine(device=device, measure=measured, **request)
    return found | {"seconds": round(time.monotonic() - start, 2)}


def _facts(reference: Reference, device: Device, ceilings: Ceilings) -> dict[str, Any]:
    limit = floor_of(reference, device, ceilings)
    terms = {
        "memory": limit.bytes_moved / ceilings.bandwidth_gb_s / 1e6,
        "compute": limit.flops / ceilings.peak_tflop_s[reference.contract.value] / 1e9,
        "launch": 1e3 * ceilings.launch_s,
    }
    fails, rms = [], 0.0
    for distribution in reference.distributions:
        inputs = reference.make_inputs(Draw(SEED, distribution))
        strict = reference.expected(reference.make_inputs(Draw(SEED, distribution)))
        with precision(reference.contract), torch.no_grad():
            own = flatten(reference.model(*inputs))
        if not all(compare(a, b, reference.tolerance).is_right for a, b in zip(own, strict, strict=True)):
            fails.append(distribution.value)
        if distribution is Distribution.AS_GIVEN:
            rms = max((float(t.double().square().mean().sqrt()) for t in strict if t.is_floating_point()), default=0.0)
    stated = {"flops": reference.stated_flops, "bytes": reference.stated_bytes}
    return {
        "input_bytes": reference.input_bytes,
        "output_bytes": reference.output_bytes,
        "parameter_bytes": reference.parameter_bytes,
        "bytes_moved": limit.bytes_moved,
        "flops": limit.flops,
        "stated": [name for name, value in stated.items() if value is not None],
        "floor_ms": 1e3 * limit.min_s,
        "bound": limit.bound,
        "terms_ms": terms,
        "output_rms": rms,
        "own_output_fails": fails,
    }


def _times(reference: Reference, device: Device, *, with_compile: bool) -> dict[str, Any]:
    per_set = max(reference.input_bytes + reference.output_bytes, 1)
    count = min(max(COLD_FACTOR * device.last_level_cache_bytes() // per_set, 2), MOST_SETS)
    count = max(1, min(count, device.free_bytes() // (4 * per_set)))
    sets = [reference.make_inputs(Draw(OTHER_SEED + n, Distribution.AS_GIVEN)) for n in range(count)]
    with precision(reference.contract), torch.no_grad():
        found: dict[str, Any] = {"eager_ms": 1e3 * _seconds(reference.model, sets, device)}
        found["graph_ms"] = _graph_ms(reference.model, sets) if device.kind == "cuda" else None
        found["compiled_ms"] = _compiled_ms(reference.model, sets, device) if with_compile else None
    found["peak_bytes"] = torch.cuda.max_memory_allocated() if device.kind == "cuda" else None
    return found


def _seconds(call: Callable[..., object], sets: Sequence[Sequence[object]], device: Device) -> float:
    """Median over repetitions of the time per call, each on inputs of its own."""

    def once(rounds: int) -> float:
        device.synchronize()
        start = time.perf_counter()
        for _ in range(rounds):
            for arguments in sets:
                call(*arguments)
        device.synchronize()
        return (time.perf_counter() - start) / (rounds * len(sets))

    once(1)
    rounds = max(1, round(LENGTH_S / max(once(1) * len(sets), 1e-9)))
    return statistics.median(once(rounds) for _ in range(REPETITIONS))


def _graph_ms(call: Callable[..., object], sets: Sequence[Sequence[object]]) -> float | None:
    """Time per call of a CUDA graph of all calls; None where they cannot be captured."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for arguments in sets:
                call(*arguments)
    except (RuntimeError, torch.AcceleratorError):
        torch.cuda.synchronize()
        return None
    found_ms: list[float] = []
    rounds = 1
    for _ in range(REPETITIONS + 1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        for _ in range(rounds):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        found_ms.append(start.elapsed_time(end) / (rounds * len(sets)))
        rounds = max(1, round(1e3 * LENGTH_S / max(found_ms[-1] * len(sets), 1e-6)))
    return statistics.median(found_ms[1:])


def _compiled_ms(model: torch.nn.Module, sets: Sequence[Sequence[object]], device: Device) -> float | str:
    try:
        return 1e3 * _seconds(torch.compile(model), sets, device)
    except Exception as error:  # noqa: BLE001 a compiler of PyTorch's may fail in any way on an honest module
        return f"{type(error).__name__}: {error}"[:200]
    finally:
        torch.compiler.reset()


if __name__ == "__main__":
    main()
