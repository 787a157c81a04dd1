"""Program of `tasks lint --run`: builds one task's reference on the CPU as a judge does, and says what it found.

A process of its own, never loaded by the server. Runs the task's source, which is the operator's, and no submission.
One JSON request on standard input, one JSON answer on standard output; what the task prints goes nowhere. It asks the
judge's own code, so that its answers are those of an evaluation: same inputs, same tolerance, same refusals.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from kernel_env.terms import Precision

from ..judge.compare import BASE, Tolerance, compare, same_bits
from ..judge.device import CpuDevice, Device
from ..judge.distributions import Distribution, Draw
from ..judge.reference import Reference
from ..judge.structures import UnsupportedTask
from .shortcuts import shortcuts_that_pass

SEED = 20_240_602
OTHER_SEED = 20_240_603
MEMORY_SHARE = 3
"""Of the quarter of the host's memory that the judge lets a task have: three quarters for reference and copies."""


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


def examine(
    task_id: str,
    source: str,
    precision: str,
    has_free_inputs: bool,
    device: Device,
    measure: Callable[[Reference], Mapping[str, Any]] = lambda _: {},
) -> dict[str, Any]:
    """What there is to say about a task.

    Args:
        measure: Called with the reference if it can be judged; what it returns is added.
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
        reference.perturb(SEED)
        report["shortcuts"] = shortcuts_that_pass(reference, SEED, OTHER_SEED)
        report.update(measure(reference))
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
    before, after = (
        [value for value in values if isinstance(value, Tensor)] for values in (reference.make_inputs(draw), inputs)
    )
    return {
        "outputs": outputs,
        "two_runs": _likeness(first, second, BASE[reference.contract]),
        "writes_to_inputs": not all(same_bits(was, now) for was, now in zip(before, after, strict=True)),
    }


def _likeness(first: list[Any], second: list[Any], tolerance: Tolerance) -> str:
    pairs = list(zip(first, second, strict=True))
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in pairs):
        return "different"
    if all(same_bits(a.contiguous(), b.contiguous()) for a, b in pairs):
        return "equal"
    return "close" if all(compare(a, b, tolerance).is_right for a, b in pairs) else "different"


if __name__ == "__main__":
    main()
