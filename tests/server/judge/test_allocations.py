"""What a call takes in all: every new tensor, whether it is given back or not, and no view."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernel_env.terms import Precision
from server.judge.allocations import AllocationCounter
from server.judge.device import CpuDevice
from server.judge.reference import Reference
from server.judge.schedule import SCHEDULES, most_bytes_per_call

X = torch.rand(64, 32)
SIZE = 4 * 64 * 32


@pytest.mark.parametrize(
    ("call", "total"),
    [
        (lambda: X + 1, SIZE),
        (lambda: (X + 1).mul_(2).t(), SIZE),
        (lambda: ((X + 1) * 2 - 3).sum() + 1, 3 * SIZE + 8),
        (lambda: X.t()[3:].unsqueeze(0), 0),
        (lambda: torch.max(X, dim=1), 64 * (4 + 8)),
        (lambda: X.to_sparse().sum(), None),
    ],
)
def test_new_tensors_are_added_up(call: Callable[[], Tensor], total: int | None) -> None:
    with AllocationCounter() as counter:
        call()
    assert counter.total_bytes == total or total is None


def test_a_module_that_takes_much_on_its_way_gets_the_memory_for_it() -> None:
    source = (
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return torch.softmax(x[:, None] * x[None, :], dim=1).sum(dim=1)\n"
        "def get_inputs():\n    return [torch.rand(512)]\n"
        "def get_init_inputs():\n    return []\n"
    )
    reference = Reference("outer", source, Precision.IEEE, True, CpuDevice(1))
    assert reference.allocated_bytes == 2 * 4 * 512**2 + 4 * 512
    plan = SCHEDULES["cpu"]
    assert most_bytes_per_call(reference, plan) == 2 * reference.allocated_bytes + plan.slack_bytes
