"""K calls made repeatable by a Python loop: outputs of a run lie in the judge's block, each in memory of its own."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from server.candidate.memory import CpuMemory
from server.candidate.replay import EagerReplay
from server.judge.device import Arena, CpuDevice
from server.protocol import Plan, Region

ORDER = (3, 0, 4, 1, 2)


@pytest.fixture
def outputs(cpu_memory: CpuMemory) -> Iterator[Arena]:
    device = CpuDevice(1)
    arena = device.allocate(1)
    cpu_memory.open(Region.OUTPUTS, "", arena.fd, arena.size)
    yield arena
    device.free(arena)


def replay_of(memory: CpuMemory, call: Callable[[int], object]) -> EagerReplay:
    return EagerReplay(call, ORDER, memory, lambda: None)


def filled(index: int) -> Tensor:
    temporary = torch.ones(50) * index
    return temporary + 100.0


def tensors_of(replay: EagerReplay) -> dict[int, Tensor]:
    result = {}
    for index, output in replay.outputs():
        assert isinstance(output, Tensor)
        result[index] = output
    return result


@pytest.mark.usefixtures("outputs")
@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Plan.ALL, ORDER),
        (Plan.HALF, ORDER[:2]),
        (Plan.NONE, ()),
        (Plan.SINGLE + 0, (0,)),
        (Plan.SINGLE + 4, (4,)),
    ],
)
def test_a_plan_runs_its_calls_in_order(cpu_memory: CpuMemory, plan: int, expected: tuple[int, ...]) -> None:
    seen: list[int] = []

    def call(index: int) -> Tensor:
        seen.append(index)
        return filled(index)

    replay = replay_of(cpu_memory, call)
    assert seen == []
    replay.run(plan)
    assert tuple(seen) == expected
    assert tuple(index for index, _ in replay.outputs()) == expected
    assert replay.calls == 5


def test_outputs_lie_in_the_block_apart_from_each_other(cpu_memory: CpuMemory, outputs: Arena) -> None:
    replay = replay_of(cpu_memory, filled)
    replay.run(Plan.ALL)
    spans = []
    for index, output in tensors_of(replay).items():
        region, offset = cpu_memory.locate(output.data_ptr())
        assert region is Region.OUTPUTS
        spans.append((offset, offset + 200))
        # The judge reads its own memory, not the tensor.
        assert outputs.data[offset : offset + 200].view(torch.float32).tolist() == [100.0 + index] * 50
    spans.sort()
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@pytest.mark.usefixtures("outputs")
def test_a_run_forgets_the_outputs_of_the_run_before(cpu_memory: CpuMemory) -> None:
    replay = replay_of(cpu_memory, filled)
    replay.run(Plan.ALL)
    replay.run(Plan.SINGLE + 2)
    assert set(tensors_of(replay)) == {2}
    replay.run(Plan.NONE)
    assert replay.outputs() == []


@pytest.mark.usefixtures("outputs")
def test_a_buffer_kept_between_calls_shows_as_one_place(cpu_memory: CpuMemory) -> None:
    kept: list[Tensor] = []

    def call(index: int) -> Tensor:
        if not kept:
            kept.append(torch.empty(8))
        return kept[0].fill_(index)

    replay = replay_of(cpu_memory, call)
    replay.run(Plan.ALL)
    assert len({output.data_ptr() for output in tensors_of(replay).values()}) == 1


@pytest.mark.usefixtures("outputs")
def test_a_buffer_made_before_the_run_lies_elsewhere(cpu_memory: CpuMemory) -> None:
    buffer = torch.empty(8)
    replay = replay_of(cpu_memory, buffer.fill_)
    replay.run(Plan.SINGLE + 1)
    assert cpu_memory.locate(tensors_of(replay)[1].data_ptr()) == (Region.FOREIGN, 0)


@pytest.mark.usefixtures("outputs")
def test_routing_ends_when_a_call_raises(cpu_memory: CpuMemory) -> None:
    def call(index: int) -> Tensor:
        raise RuntimeError(str(index))

    replay = replay_of(cpu_memory, call)
    with pytest.raises(RuntimeError, match="3"):
        replay.run(Plan.ALL)
    assert cpu_memory.locate(torch.empty(9).data_ptr())[0] is Region.FOREIGN


@pytest.mark.usefixtures("outputs")
def test_the_device_is_awaited_after_the_calls(cpu_memory: CpuMemory) -> None:
    events: list[str] = []

    def call(index: int) -> None:
        events.append(f"call {index}")

    EagerReplay(call, (0, 1), cpu_memory, lambda: events.append("wait")).run(Plan.ALL)
    assert events == ["call 0", "call 1", "wait"]
