"""How a submission's module is given the values of the reference's parameters and buffers."""

import torch
from torch import Tensor, nn

from server.candidate.loading import (
    ParameterSlot,
    bind_parameters,
)


def slot(name: str, *shape: int, parameter: bool = True, dtype: torch.dtype = torch.float32) -> ParameterSlot:
    return ParameterSlot(name, parameter, shape, dtype, 0)


def value(*shape: int, fill: float) -> Tensor:
    return torch.full(shape, fill)


class Two(nn.Module):
    """A weight, a bias and a statistic, under names of its own choice."""

    def __init__(self, weight: str = "weight", bias: str = "bias", statistic: str = "mean") -> None:
        super().__init__()
        self.register_parameter(weight, nn.Parameter(torch.zeros(4, 3)))
        self.register_parameter(bias, nn.Parameter(torch.zeros(4)))
        self.register_buffer(statistic, torch.zeros(4))


SLOTS = [slot("weight", 4, 3), slot("bias", 4), slot("mean", 4, parameter=False)]
VALUES = [value(4, 3, fill=1.0), value(4, fill=2.0), value(4, fill=3.0)]


def means(model: nn.Module) -> list[float]:
    return [float(tensor.float().mean()) for tensor in model.state_dict().values()]


def test_parameters_and_buffers_are_bound_by_name() -> None:
    model = Two()
    assert bind_parameters(model, SLOTS, VALUES) == ()
    assert means(model) == [1.0, 2.0, 3.0]


def test_values_are_copied_not_shared() -> None:
    model = Two()
    bind_parameters(model, SLOTS, VALUES)
    assert model.get_parameter("weight").data_ptr() != VALUES[0].data_ptr()


def test_renamed_parameters_are_bound_by_position_shape_and_type() -> None:
    model = Two("w", "b")
    assert bind_parameters(model, SLOTS, VALUES) == ()
    assert means(model) == [1.0, 2.0, 3.0]


def test_renamed_parameters_of_one_shape_are_bound_in_order() -> None:
    model = nn.ParameterDict({"first": torch.zeros(5), "second": torch.zeros(5), "third": torch.zeros(5)})
    slots = [slot("c", 5), slot("second", 5), slot("a", 5)]
    assert bind_parameters(model, slots, [value(5, fill=f) for f in (1.0, 2.0, 3.0)]) == ()
    assert means(model) == [1.0, 2.0, 3.0]


def test_a_name_with_another_shape_is_bound_by_position_instead() -> None:
    model = nn.ParameterDict({"weight": torch.zeros(4), "bias": torch.zeros(4, 3)})
    assert bind_parameters(model, SLOTS[:2], VALUES[:2]) == ()
    assert float(model["weight"].detach().mean()) == 2.0
    assert float(model["bias"].detach().mean()) == 1.0


def test_missing_parameters_are_named_and_nothing_is_loaded() -> None:
    model = nn.ParameterDict({"bias": torch.zeros(4)})
    assert bind_parameters(model, SLOTS, VALUES) == (0,)
    assert means(model) == [0.0]
    assert bind_parameters(nn.Module(), SLOTS, VALUES) == (0, 1)


def test_one_parameter_cannot_stand_for_two() -> None:
    model = nn.ParameterDict({"x": torch.zeros(4)})
    assert bind_parameters(model, [slot("a", 4), slot("b", 4)], [value(4, fill=1.0), value(4, fill=2.0)]) == (1,)


def test_a_renamed_parameter_of_another_type_is_missing() -> None:
    model = nn.ParameterDict({"x": torch.zeros(4, dtype=torch.float16)})
    assert bind_parameters(model, [slot("a", 4)], [value(4, fill=1.0)]) == (0,)


def test_a_parameter_kept_as_a_plain_attribute_is_missing() -> None:
    model = nn.Module()
    model.weight = torch.zeros(4, 3)
    assert bind_parameters(model, SLOTS[:1], VALUES[:1]) == (0,)


def test_a_buffer_may_be_left_out_and_is_never_taken_from_another_place() -> None:
    model = Two(statistic="other")
    assert bind_parameters(model, SLOTS, VALUES) == ()
    assert means(model) == [1.0, 2.0, 0.0]


def test_parameters_and_buffers_of_the_submissions_own_are_left_alone() -> None:
    model = Two()
    model.register_parameter("extra", nn.Parameter(value(4, fill=9.0)))
    assert bind_parameters(model, SLOTS, VALUES) == ()
    assert float(model.get_parameter("extra").detach().mean()) == 9.0


def test_batch_norm_statistics_arrive() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 1), nn.BatchNorm2d(4))
    reference = nn.Sequential(nn.Conv2d(1, 4, 1), nn.BatchNorm2d(4))
    reference.get_buffer("1.running_var").fill_(2.5)
    reference.get_buffer("1.num_batches_tracked").fill_(7)
    parameters = dict(reference.named_parameters())
    slots = [
        ParameterSlot(name, name in parameters, tuple(t.shape), t.dtype, 0)
        for name, t in reference.state_dict().items()
    ]
    assert bind_parameters(model, slots, list(reference.state_dict().values())) == ()
    for name, tensor in reference.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor), name


def test_binding_moves_the_version_of_every_parameter() -> None:
    """What a first forward derived from a parameter and keyed by its version is then derived anew."""
    model = Two("w")
    versions = [p._version for p in model.parameters()]
    bind_parameters(model, SLOTS, VALUES)
    after = [p._version for p in model.parameters()]
    assert all(new > old for new, old in zip(after, versions, strict=True))
    bind_parameters(model, SLOTS, VALUES)
    assert all(p._version > old for p, old in zip(model.parameters(), after, strict=True))


def test_parameters_keep_their_identity_and_gradients_stay_possible() -> None:
    model = Two()
    before = [id(p) for p in model.parameters()]
    bind_parameters(model, SLOTS, VALUES)
    assert [id(p) for p in model.parameters()] == before
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())


def test_a_task_without_parameters_binds_to_anything() -> None:
    assert bind_parameters(Two(), [], []) == ()
    assert bind_parameters(nn.Module(), [], []) == ()
