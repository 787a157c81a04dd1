"""Whose arithmetic is it? The rule about PyTorch operators in `forward`, on the names a call was seen to run. No torch.

The names come from the candidate's own process, so an attacker can leave some out. The rule catches habits: calling
PyTorch for the work, beside a kernel that adds zero or not. `docs/security.md` says what it does not show.
"""

from collections.abc import Iterable
from enum import StrEnum

from .operators import arithmetic

SINGLE_OPERATOR_LEVEL = 1
"""KernelBench level of tasks that are one operator: PyTorch doing any arithmetic there does the task."""

LEAST_SHARE = 0.05
"""Own kernels that do less of the work than this are none."""


class Policy(StrEnum):
    """How the rule is applied."""

    STRICT = "strict"
    """On tasks that are one operator, any arithmetic by PyTorch is `no_kernel`; on others the share decides."""

    SHARE = "share"
    """On every task the speed term is multiplied by the own kernels' share of the work."""

    OFF = "off"
    """Any correct module is timed and rewarded."""


def rule(policy: Policy, level: int) -> str:
    """The rule for a task of that level, as the prompt states it."""
    if policy is Policy.OFF:
        return "What else it computes is up to you."
    if policy is Policy.STRICT and level == SINGLE_OPERATOR_LEVEL:
        return "A submission in which PyTorch or another library does arithmetic has no kernel, and its reward is 0."
    return (
        "Where PyTorch or another library computes as well, the speed term of the reward is multiplied by your "
        f"kernels' share of the work of a call; below {100 * LEAST_SHARE:.0f} % the reward is 0."
    )


def objection(policy: Policy, level: int, operators: Iterable[str]) -> str | None:
    """Why a submission counts as having no kernel of its own, for the agent; None if it does not."""
    found = arithmetic(operators)
    if policy is not Policy.STRICT or level != SINGLE_OPERATOR_LEVEL or not found:
        return None
    return (
        f"forward has PyTorch do arithmetic: {_spelled(found)}. In this task all of it is to be done by kernels of "
        "your own; PyTorch may allocate, fill, view and copy."
    )


def asks_for_share(policy: Policy, level: int, operators: Iterable[str]) -> bool:
    """Whether the own kernels' share of the work is to be measured: PyTorch computes, and is allowed to."""
    if policy is Policy.OFF or (policy is Policy.STRICT and level == SINGLE_OPERATOR_LEVEL):
        return False
    return bool(arithmetic(operators))


def objection_to_share(share: float | None, operators: Iterable[str]) -> str | None:
    """Why own kernels that do so much of the work count as none, for the agent; None if they do not.

    Args:
        share: 0 to 1; None where it could not be measured, which is no fault of the submission's.
    """
    if share is None or share >= LEAST_SHARE:
        return None
    return (
        f"kernels of your own do {100 * share:.0f} % of the work of a call; PyTorch does the rest: "
        f"{_spelled(arithmetic(operators))}. Below {100 * LEAST_SHARE:.0f} % a submission counts as having no kernel."
    )


def _spelled(operators: Iterable[str]) -> str:
    return ", ".join(f"torch.{name.removeprefix('aten.')}" for name in tuple(operators)[:6])
