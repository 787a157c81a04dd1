"""The built-in tasks do what their text says, at each of their CPU sizes, and can be judged there."""

import pytest

from server.examiner.trial_program import examine
from server.judge.device import CpuDevice
from server.tasks.registry import load_tasks
from server.tasks.roles import has_free_inputs
from server.tasks.task import Task

SIZES = [
    pytest.param(sized, id=f"{task.task_id}-{number}")
    for task in load_tasks()
    for number, sized in enumerate(task.at_sizes("cpu"))
]


@pytest.mark.parametrize("task", SIZES)
def test_it_can_be_judged_and_needs_a_kernel(task: Task) -> None:
    """Finite, reproducible, and neither zeros, a constant, an input nor an earlier output would pass."""
    report = examine(
        task.task_id, task.source_for("cpu"), task.precision.value, has_free_inputs(task.task_id), CpuDevice(1)
    )
    assert report["refused"] is None
    assert report["two_runs"] in {"equal", "close"}
    assert not report["writes_to_inputs"]
    passing = {name: right for name, right in report["shortcuts"].items() if isinstance(right, list) and right}
    assert passing == {}
    assert "as_given" in report["distributions"]


@pytest.mark.parametrize("task", SIZES)
def test_cpu_size_is_a_few_megabytes(task: Task) -> None:
    names: dict[str, object] = {}
    exec(task.source_for("cpu"), names)
    inputs = names["get_inputs"]()  # type: ignore[operator]
    assert 0.005 < sum(tensor.nbytes for tensor in inputs) / 1e6 < 20
