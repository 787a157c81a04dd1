"""PyTorch may allocate, set, move and view on a one-operator task; nothing else."""

import pytest

from server.policy import Policy, arithmetic, objection

LAYOUT = ("aten.empty_like.default", "aten.view.default", "aten.t.default", "aten.copy_.default", "aten.zero_.default")


def test_allocation_layout_and_filling_are_no_arithmetic() -> None:
    assert arithmetic(LAYOUT) == ()


def test_operators_of_other_namespaces_are_the_submissions_own() -> None:
    assert arithmetic(("my_library.fused_softmax.default", "triton.launch")) == ()


@pytest.mark.parametrize("name", ["aten.tanh.default", "aten.mm.out", "aten.add_.Tensor", "aten._softmax.default"])
def test_every_other_operator_of_pytorch_is_arithmetic(name: str) -> None:
    assert (".".join(name.split(".")[:2]),) == arithmetic((*LAYOUT, name))


def test_arithmetic_is_objected_to_on_one_operator_tasks_only() -> None:
    seen = ("aten.tanh.default", "aten.tanh.out")
    text = objection(Policy.STRICT, 1, seen)
    assert text is not None
    assert text.count("torch.tanh") == 1
    assert objection(Policy.STRICT, 2, seen) is None
    assert objection(Policy.OFF, 1, seen) is None
    assert objection(Policy.STRICT, 1, LAYOUT) is None
