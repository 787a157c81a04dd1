"""Both sides of an evaluation prepare modules alike."""

import torch

from server.conventions import silence_dropout


def test_dropout_is_off_although_the_module_stays_in_training_mode() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.AlphaDropout(0.3))
    silence_dropout(model)
    assert model.training
    x = torch.randn(3, 4)
    assert torch.equal(model[0](x), model(x))


def test_a_reference_with_dropout_can_be_judged() -> None:
    """Its expected outputs are the same in every call."""
    from kernel_env.terms import Precision
    from server.judge.device import CpuDevice
    from server.judge.distributions import Distribution, Draw
    from server.judge.reference import Reference

    source = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        return self.drop(torch.relu(x))


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
"""
    reference = Reference("drop", source, Precision.IEEE, True, CpuDevice(1))
    inputs = reference.make_inputs(Draw(1, Distribution.NORMAL))
    assert torch.equal(reference.expected(inputs)[0], reference.expected(inputs)[0])
    assert isinstance(inputs[0], torch.Tensor)
    assert torch.equal(reference.expected(inputs)[0], torch.relu(inputs[0]))
