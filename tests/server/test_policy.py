"""PyTorch may allocate, set, move and view on a one-operator task; nothing else."""

import pytest

from server.operators import arithmetic
from server.policy import LEAST_SHARE, Policy, asks_for_share, objection, objection_to_share, rule

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


@pytest.mark.parametrize(
    ("policy", "level", "asked"),
    [
        (Policy.STRICT, 1, False),  # there it is no_kernel
        (Policy.STRICT, 2, True),
        (Policy.STRICT, 3, True),
        (Policy.SHARE, 1, True),
        (Policy.SHARE, 2, True),
        (Policy.OFF, 1, False),
        (Policy.OFF, 2, False),
    ],
)
def test_the_share_is_measured_where_pytorch_may_compute(policy: Policy, level: int, asked: bool) -> None:
    assert asks_for_share(policy, level, (*LAYOUT, "aten.mm.default")) is asked
    assert not asks_for_share(policy, level, LAYOUT)


def test_share_policy_allows_arithmetic_everywhere() -> None:
    assert objection(Policy.SHARE, 1, ("aten.tanh.default",)) is None


@pytest.mark.parametrize("share", [None, LEAST_SHARE, 0.5, 1.0])
def test_a_share_that_is_unknown_or_large_enough_is_no_objection(share: float | None) -> None:
    assert objection_to_share(share, ("aten.mm.default",)) is None


def test_next_to_no_share_is_no_kernel_and_the_agent_is_told_what_did_the_rest() -> None:
    text = objection_to_share(0.99 * LEAST_SHARE, ("aten.mm.default", "aten.tanh.default", *LAYOUT))
    assert text is not None
    assert "torch.mm, torch.tanh" in text
    assert "5 % of the work" in text


def test_the_rule_an_agent_reads_is_the_rule_applied() -> None:
    assert "its reward is 0" in rule(Policy.STRICT, 1)
    for policy, level in ((Policy.STRICT, 2), (Policy.SHARE, 1)):
        text = rule(policy, level)
        assert "multiplied by your kernels' share" in text
        assert f"below {100 * LEAST_SHARE:.0f} %" in text
    assert "reward" not in rule(Policy.OFF, 1)
