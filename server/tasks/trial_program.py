"""Program of `tasks lint --run`: builds one task's reference on the CPU as a judge does, and says what it found.

A process of its own, never loaded by the server. Runs the task's source, which is the operator's, and no submission.
One JSON request on standard input, one JSON answer on standard output; what the task prints goes nowhere. It asks the
judge's own code, so that its answers are those of an evaluation: same inputs, same tolerance, same refusals.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Any

from kernel_env.terms import Precision

from ..judge.compare import BASE, Tolerance, compare, same_bits
from ..judge.device import CpuDevice
from ..judge.distributions import Distribution, Draw
from ..judge.reference import Reference
from ..judge.structures import UnsupportedTask

SEED = 20_240_602
OTHER_SEED = 20_240_603
MEMORY_SHARE = 3
"""Of the quarter of the host's memory that the judge lets a task have: three quarters for reference and copies."""

_NO_SUCH_INPUT = "no input has the shape and type of the output"


def main() -> None:
    """Answer the request on standard input."""
    request = json.loads(sys.stdin.buffer.read())
    answer_fd = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    device = CpuDevice(request.pop("threads"))
    limit = MEMORY_SHARE * device.free_bytes()
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with os.fdopen(answer_fd, "wb") as answer:
        answer.write(json.dumps(examine(device=device, **request)).encode())


def examine(task_id: str, source: str, precision: str, has_free_inputs: bool, device: CpuDevice) -> dict[str, Any]:
    """What there is to say about a task.

    Returns:
        `refused`: why it cannot be judged, or None. `outputs`: shape and type of each. `two_runs`: `equal`,
        `close` or `different`. `writes_to_inputs`. `distributions`, `factor`: of the calibration. `shortcuts`: for
        each answer that needs no kernel, the distributions under which it would be right. Fields that were not
        reached are absent.
    """
    report: dict[str, Any] = {"refused": None}

    class Trial(Reference):
        def _calibrate(self) -> tuple[tuple[Distribution, ...], Tolerance]:
            # Here outputs are known, and nothing has been refused for not being reproducible yet.
            report.update(_first_look(self))
            return super()._calibrate()

    try:
        reference = Trial(task_id, source, Precision(precision), has_free_inputs, device)
        report["distributions"] = [distribution.value for distribution in reference.distributions]
        report["factor"] = reference.tolerance.factor
        report["shortcuts"] = _shortcuts(reference)
    except UnsupportedTask as error:
        report["refused"] = str(error)
    except Exception as error:  # noqa: BLE001 the task's code may raise anything, in any place
        report["refused"] = f"{type(error).__name__}: {error}"
    return report


def _first_look(reference: Reference) -> dict[str, Any]:
    draw = Draw(SEED, Distribution.AS_GIVEN)
    # Both made before either is used: making inputs seeds the generators, and a forward that draws from them must show.
    inputs, again = reference.make_inputs(draw), reference.make_inputs(draw)
    first, second = reference.expected(inputs), reference.expected(again)
    spec = reference.output_spec
    outputs = [
        {"shape": list(shape), "dtype": str(dtype).removeprefix("torch.")}
        for shape, dtype in zip(spec.shapes, spec.dtypes, strict=True)
    ]
    before = [value for value in reference.make_inputs(draw) if hasattr(value, "shape")]
    after = [value for value in inputs if hasattr(value, "shape")]
    return {
        "outputs": outputs,
        "two_runs": _likeness(first, second, BASE[reference.contract]),
        "writes_to_inputs": not all(same_bits(was, now) for was, now in _pairs(before, after)),
    }


def _likeness(first: list[Any], second: list[Any], tolerance: Tolerance) -> str:
    pairs = list(zip(first, second, strict=True))
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in pairs):
        return "different"
    if all(same_bits(a.contiguous(), b.contiguous()) for a, b in pairs):
        return "equal"
    return "close" if all(compare(a, b, tolerance).is_right for a, b in pairs) else "different"


def _shortcuts(reference: Reference) -> dict[str, Any]:
    """Distributions under which each answer without a kernel is right; a text where the answer cannot be given."""
    reference.perturb(SEED)
    answers: dict[str, Callable[[list[Any], list[Any], list[Any]], list[Any] | None]] = {
        "zeros": lambda expected, _inputs, _earlier: [want.new_zeros(want.shape) for want in expected],
        "constant": lambda expected, _inputs, earlier: [_mean(was, want) for was, want in _pairs(earlier, expected)],
        "input": lambda expected, inputs, _earlier: _inputs_like(expected, inputs),
        "earlier output": lambda _expected, _inputs, earlier: earlier,
    }
    right: dict[str, Any] = {name: [] for name in answers}
    for distribution in reference.distributions:
        earlier = reference.expected(reference.make_inputs(Draw(OTHER_SEED, distribution)))
        inputs = reference.make_inputs(Draw(SEED, distribution))
        kept = [value.clone() if hasattr(value, "clone") else value for value in inputs]  # forward may write to its own
        expected = reference.expected(inputs)
        for name, answer in answers.items():
            given = answer(expected, kept, earlier)
            if given is None:
                right[name] = _NO_SUCH_INPUT
            elif all(compare(got, want, reference.tolerance).is_right for got, want in _pairs(given, expected)):
                right[name].append(distribution.value)
    return right


def _pairs(left: list[Any], right: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(left, right, strict=True)


def _mean(earlier: Any, like: Any) -> Any:
    """Tensor as `like`, filled with the mean of an output for other inputs."""
    return like.new_full(like.shape, earlier.double().mean().item()) if like.numel() else like


def _inputs_like(expected: list[Any], inputs: list[Any]) -> list[Any] | None:
    """For each output the first input of its shape and type; None if there is none for one of them."""
    found = []
    for want in expected:
        like = [x for x in inputs if getattr(x, "shape", None) == want.shape and x.dtype == want.dtype]
        if not like:
            return None
        found.append(like[0])
    return found


if __name__ == "__main__":
    main()
