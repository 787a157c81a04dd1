"""The parameters of a reference: perturbed, restored, and laid out for a candidate."""

import pytest
import torch
from torch import Tensor

from kernel_env.terms import Precision
from server.judge.device import CpuDevice
from server.judge.reference import ALIGNMENT, Reference

NET = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.gain = torch.nn.Parameter(torch.zeros(4))
        self.low = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
        self.register_buffer("mask", torch.tril(torch.ones(4, 4)))
        self.steps = torch.nn.Parameter(torch.tensor(3), requires_grad=False)

    def forward(self, x):
        return self.norm(self.linear(x)) @ self.mask + self.gain

def get_inputs():
    return [torch.rand(8, 5)]

def get_init_inputs():
    return []
"""


def build(source: str, contract: Precision = Precision.IEEE, *, free: bool = True) -> Reference:
    return Reference("a_task", source, contract, free, CpuDevice(1))


@pytest.fixture(scope="module")
def net() -> Reference:
    return build(NET)


def state_of(reference: Reference) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in reference.model.state_dict().items()}


def test_perturbation_changes_every_element_of_every_floating_parameter(net: Reference) -> None:
    pristine = dict(load_pristine(net))
    net.perturb(1)
    for name, parameter in net.model.named_parameters():
        if parameter.is_floating_point() and parameter.dtype is not torch.bfloat16:
            assert bool((parameter != pristine[name]).all()), name
    assert not torch.equal(net.model.get_parameter("low"), pristine["low"])
    assert torch.equal(net.model.get_parameter("steps"), pristine["steps"])


def load_pristine(reference: Reference) -> dict[str, Tensor]:
    return dict(reference._pristine)


def test_perturbation_moves_parameters_by_about_a_tenth_of_their_size(net: Reference) -> None:
    before = load_pristine(net)["linear.weight"]
    net.perturb(2)
    after = net.model.get_parameter("linear.weight").detach()
    moved = (after - before).square().mean().sqrt() / before.square().mean().sqrt()
    assert 0.05 < float(moved) < 0.3
    assert 0.01 < float(net.model.get_parameter("gain").detach().abs().mean()) < 0.5  # zero before


def test_perturbation_keeps_the_meaning_of_buffers(net: Reference) -> None:
    pristine = load_pristine(net)
    for seed in range(20):
        net.perturb(seed)
        state = state_of(net)
        assert bool((state["norm.running_var"] > 0).all())
        assert not torch.equal(state["norm.running_var"], pristine["norm.running_var"])
        assert not torch.equal(state["norm.running_mean"], pristine["norm.running_mean"])
        assert torch.equal(state["mask"], pristine["mask"])
        assert torch.equal(state["norm.num_batches_tracked"], pristine["norm.num_batches_tracked"])


def test_perturbation_begins_at_the_original_state_every_time(net: Reference) -> None:
    net.perturb(3)
    first = state_of(net)
    net.expected([torch.rand(8, 5)])  # moves the statistics of the batch norm
    net.perturb(4)
    other = state_of(net)
    net.perturb(3)
    again = state_of(net)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["linear.weight"], other["linear.weight"])


def test_slots_name_every_parameter_and_buffer_at_aligned_places(net: Reference) -> None:
    state = net.model.state_dict()
    assert [slot.name for slot in net.slots] == list(state)
    assert {slot.name for slot in net.slots if slot.is_parameter} == {n for n, _ in net.model.named_parameters()}
    ends = 0
    for slot, value in zip(net.slots, net.state_values(), strict=True):
        assert slot.offset % ALIGNMENT == 0
        assert slot.offset >= ends
        ends = slot.offset + value.numel() * value.element_size()
        assert (slot.shape, slot.dtype) == (tuple(value.shape), value.dtype)
        assert torch.equal(value, state[slot.name])
    assert net.state_bytes >= ends
