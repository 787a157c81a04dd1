"""The reward, in OpenEnv's Rubric API: a correctness gate, then how close to the roofline. Pure; server side.

    reward = 0                                 a stage failed
    reward = 0.3 + 2.7 * speed, 0.3 to 3.0     correct; speed = min(t_min / t_new, 1), times the own kernels' share
    reward = None                              not judged: our fault, or busy

Speed is 0 where time says nothing: Triton in the interpreter, or a time the device cannot reach.
"""

import math
from typing import Any

from openenv.core.rubrics.base import Rubric

from kernel_env.models import UNSCORED, KernelObservation, Stage, Verdict

CORRECT_REWARD = 0.3
"""A correct kernel earns something even when it is slow, and far less than a fast one."""

SPEED_REWARD = 2.7
"""On top, at the roofline."""

_STAGES = tuple(Stage)
_CORRECT = frozenset({Verdict.PASSED, Verdict.ROOFLINE_VIOLATION})


class _Node(Rubric):
    """Base of the tree. OpenEnv's constructor has no annotations; this one has."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]


class StageRubric(_Node):
    """1 when the evaluation got past `stage`, else 0."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, action: Any, observation: KernelObservation) -> float:
        """Score of one observation."""
        return float(observation.stage is not None and _STAGES.index(observation.stage) > _STAGES.index(self.stage))


class CorrectRubric(_Node):
    """1 when every output was right, else 0."""

    def forward(self, action: Any, observation: KernelObservation) -> float:
        """Score of one observation. The verdict and the flag must agree."""
        return float(observation.verdict in _CORRECT and observation.correct is True)


class SpeedRubric(_Node):
    """Fraction of the roofline that was reached, 0 to 1, times the share of the work done by own kernels."""

    def forward(self, action: Any, observation: KernelObservation) -> float:
        """Score of one observation."""
        fraction = observation.roofline_frac
        if observation.verdict is not Verdict.PASSED or observation.timing == "interpreted":
            return 0.0
        if fraction is None or not math.isfinite(fraction):
            return 0.0
        share = 1.0 if observation.own_share is None else observation.own_share
        return min(max(fraction, 0.0), 1.0) * share


class KernelRubric(_Node):
    """The whole reward. Children: `static`, `compile`, `correct`, `speed`.

    A tree holds the scores of its last call, so every environment has one of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.static = StageRubric(Stage.STATIC)
        self.compile = StageRubric(Stage.COMPILE)
        self.correct = CorrectRubric()
        self.speed = SpeedRubric()

    # OpenEnv types the reward as float, yet sends None on, which trainers read as "leave out".
    def forward(self, action: Any, observation: KernelObservation) -> float | None:  # type: ignore[override]
        """Reward of one observation; None when nothing was judged."""
        self.reset()
        if observation.verdict is None or observation.verdict in UNSCORED:
            return None
        for gate in (self.static, self.compile, self.correct):
            if gate(action, observation) == 0.0:
                return 0.0
        return CORRECT_REWARD + SPEED_REWARD * float(self.speed(action, observation))

    def reset(self) -> None:
        """Forget the last scores: a child behind a closed gate would else still show those of an earlier step."""
        self.last_score = None
        for node in self.rubrics():
            node.last_score = None

    def scores(self) -> dict[str, float]:
        """Score of every child in the last call, 0 where a gate before it was closed; empty when nothing was judged."""
        if self.last_score is None:
            return {}
        return {name: float(node.last_score or 0.0) for name, node in self.named_rubrics()}


def kernel_rubric() -> KernelRubric:
    """A fresh tree for one environment."""
    return KernelRubric()
