"""Shared memory on the CPU device: what is written where, and which changes of inputs are seen."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kernel_env.terms import Precision
from server.judge import exchange as exchange_module
from server.judge.device import CpuDevice
from server.judge.distributions import Distribution, Draw
from server.judge.exchange import Exchange
from server.judge.reference import ALIGNMENT, Reference

SOURCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width, scale):
        super().__init__()
        self.linear = torch.nn.Linear(width, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.scale = scale

    def forward(self, x, labels, power):
        return self.norm(self.linear(x)) * self.scale + labels[:, None] + power

def get_inputs():
    return [torch.rand(6, 5), torch.randint(0, 9, (6,)), 2.0]

def get_init_inputs():
    return [5, 1.5]
"""


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference("affine", SOURCE, Precision.IEEE, has_free_inputs=True, device=CpuDevice(1))


@pytest.fixture
def shared(reference: Reference) -> Iterator[Exchange]:
    exchange = Exchange(CpuDevice(1), reference)
    yield exchange
    exchange.close()


def memory_of_inputs(shared: Exchange) -> Tensor:
    assert shared.inputs is not None
    return shared.inputs.data


def draws(count: int) -> dict[int, Draw]:
    return {i: Draw(1000 + i, Distribution.NORMAL) for i in range(count)}


def test_parameters_arrive_where_the_slots_say(shared: Exchange, reference: Reference) -> None:
    reference.perturb(11)
    shared.open_inputs(1, with_state=True)
    block = memory_of_inputs(shared)
    assert {slot.name for slot in reference.slots} == set(reference.model.state_dict())
    for slot in reference.slots:
        value = reference.model.state_dict()[slot.name]
        assert slot.offset % ALIGNMENT == 0
        raw = block[slot.offset : slot.offset + value.numel() * value.element_size()]
        assert torch.equal(raw.view(slot.dtype).view(slot.shape), value)


@pytest.mark.parametrize("with_state", [False, True])
def test_inputs_arrive_where_the_command_says(shared: Exchange, reference: Reference, with_state: bool) -> None:
    fields = shared.open_inputs(3, with_state=with_state)
    shared.fill(draws(3))
    block = memory_of_inputs(shared)
    assert fields["inputs"] == {"handle": "", "size": block.numel()}
    assert (fields["sets"], fields["arguments"][2]) == (3, {"value": 2.0})
    floats, labels = fields["arguments"][:2]
    assert (floats["shape"], floats["dtype"]) == ([6, 5], "float32")
    assert (labels["shape"], labels["dtype"]) == ([6], "int64")
    for index, draw in draws(3).items():
        start = floats["offset"] + index * fields["stride"]
        assert start % ALIGNMENT == 0
        expected = reference.make_inputs(draw)[0]
        assert isinstance(expected, Tensor)
        assert torch.equal(block[start : start + 120].view(torch.float32).view(6, 5), expected)
    if with_state:
        assert floats["offset"] >= reference.state_bytes


def test_state_is_not_overwritten_by_inputs(shared: Exchange, reference: Reference) -> None:
    reference.perturb(12)
    shared.open_inputs(2, with_state=True)
    before = memory_of_inputs(shared)[: reference.state_bytes].clone()
    shared.fill(draws(2))
    assert torch.equal(memory_of_inputs(shared)[: reference.state_bytes], before)


@pytest.mark.parametrize("keeps_copies", [True, False])
def test_private_inputs_are_the_shared_ones_in_other_memory(
    shared: Exchange, monkeypatch: pytest.MonkeyPatch, keeps_copies: bool
) -> None:
    monkeypatch.setattr(exchange_module, "PRIVATE_SHARE", 0.12 if keeps_copies else 0.0)
    shared.open_inputs(2, with_state=False)
    shared.fill(draws(2))
    block = memory_of_inputs(shared)
    for index, draw in draws(2).items():
        private = shared.private_inputs(index, draw)
        assert shared.inputs_intact(index, private)
        for value in private:
            if isinstance(value, Tensor):
                assert not 0 <= value.data_ptr() - block.data_ptr() < block.numel()
        assert private[2] == 2.0


def test_sets_of_another_repetition_are_not_intact(shared: Exchange) -> None:
    shared.open_inputs(2, with_state=False)
    shared.fill(draws(2))
    old = [shared.private_inputs(i, draw) for i, draw in draws(2).items()]
    assert not shared.inputs_intact(0, old[1])
    shared.fill({0: Draw(77, Distribution.UNIFORM)})
    assert not shared.inputs_intact(0, old[0])
    assert shared.inputs_intact(1, old[1])


@pytest.mark.parametrize("argument", [0, 1])
def test_one_changed_bit_of_any_input_is_seen(shared: Exchange, argument: int) -> None:
    fields = shared.open_inputs(2, with_state=True)
    shared.fill(draws(2))
    private = [shared.private_inputs(i, draw) for i, draw in draws(2).items()]
    start = fields["arguments"][argument]["offset"] + fields["stride"]
    value = private[1][argument]
    assert isinstance(value, Tensor)
    block = memory_of_inputs(shared)
    for byte in range(start, start + value.numel() * value.element_size()):
        for bit in (0, 7):
            block[byte] ^= 1 << bit
            assert not shared.inputs_intact(1, private[1])
            assert shared.inputs_intact(0, private[0])
            block[byte] ^= 1 << bit
    assert shared.inputs_intact(1, private[1])


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_closing_gives_every_descriptor_back(reference: Reference) -> None:
    before = open_descriptors()
    exchange = Exchange(CpuDevice(1), reference)
    exchange.open_inputs(1, with_state=True)
    exchange.open_inputs(2, with_state=False)
    exchange.open_outputs(100)
    assert open_descriptors() >= before + 3
    exchange.close()
    exchange.close()
    assert open_descriptors() == before
    assert exchange.inputs is None
    assert exchange.outputs is None
