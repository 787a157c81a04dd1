"""The built-in tasks do what their text says, at their CPU size."""

import pytest
import torch

from server.tasks.registry import load_tasks
from server.tasks.task import Task

TASKS = tuple(load_tasks())


def run_on_cpu(task: Task) -> tuple[list[torch.Tensor], torch.Tensor]:
    names: dict[str, object] = {}
    exec(task.source_for("cpu"), names)
    torch.manual_seed(0)
    model = names["Model"](*names["get_init_inputs"]())  # type: ignore[operator]
    inputs = names["get_inputs"]()  # type: ignore[operator]
    with torch.no_grad():
        return inputs, model(*inputs)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_output_is_finite_float32_and_not_constant(task: Task) -> None:
    _, output = run_on_cpu(task)
    assert output.dtype is torch.float32
    assert output.isfinite().all()
    assert output.std() > 1e-3 * output.abs().max()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_output_is_no_copy_of_the_input(task: Task) -> None:
    inputs, output = run_on_cpu(task)
    assert output.shape != inputs[0].shape or not torch.allclose(output, inputs[0], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_cpu_size_is_a_few_megabytes(task: Task) -> None:
    inputs, output = run_on_cpu(task)
    megabytes = sum(tensor.nbytes for tensor in (*inputs, output)) / 1e6
    assert 0.3 < megabytes < 20
