"""Judges an evaluation again from its audit bundle, and says what came out differently. Trusted side; no torch.

The hidden values are the same: parameters, the inputs of the correctness trials, and those of every timed repetition
whose number of calls is the same. The number of calls follows from how long they take, so on another day it may differ.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from .errors import InvalidRequest
from .settings import Keep, Settings

if TYPE_CHECKING:
    from .evaluator.audit import Bundle
    from .evaluator.results import EvalResult

TIME_TOLERANCE = 0.1
"""By what share times of the same kernel on the same kind of device may differ."""

_SHOWN = ("verdict", "stage", "max_abs_err", "own_share", "suspicious")
_SHOWN_PLACE = ("name", "isolation", "python", "driver", "versions")
_SHOWN_TIMES = ("mode", "new_ms", "ref_ms", "calls")


@dataclass(frozen=True, slots=True)
class Difference:
    """One value then and now."""

    name: str
    then: Any
    now: Any
    matters: bool
    """Whether the two contradict each other; false for what may differ, such as a time on another device."""


@dataclass(frozen=True, slots=True)
class Rejudged:
    """What came of a bundle."""

    result: "EvalResult"
    differences: tuple[Difference, ...]

    @property
    def agrees(self) -> bool:
        """Whether the evaluation came out as it did then."""
        return not any(difference.matters for difference in self.differences)


def rejudge(bundle: "Bundle", settings: Settings) -> Rejudged:
    """Evaluate the submission of a bundle again, with the hidden values it had.

    Raises:
        InvalidRequest: The bundle is of another kind of device, or its judge did not live to tell the seeds.
        EvaluatorError: Our fault.
    """
    from .evaluator.evaluator import Evaluator  # noqa: PLC0415 the other commands do without

    if bundle.secret is None:
        raise InvalidRequest("this bundle holds no seeds: its judge ended before it could tell them")
    evaluator = Evaluator(replace(settings, audit=Keep.OFF))
    try:
        here = evaluator.environments()[0]
        then = bundle.environment
        if here["kind"] != then["kind"]:
            raise InvalidRequest(
                f"this bundle is of a {then['kind']} device, the one here is {here['name']}: name another by --device"
            )
        result = evaluator.evaluate(bundle.the_task(), bundle.the_submission(), secret=bundle.secret)
    finally:
        evaluator.close()
    return Rejudged(result, compare(bundle, asdict(result), here))


def compare(bundle: "Bundle", now: Mapping[str, Any], here: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Everything that differs between a bundle and a new result.

    Args:
        now: Fields of the new result.
        here: Where it took place.
    """
    then, there = bundle.result, bundle.environment
    is_same_place = here["digest"] == there["digest"]
    before, after = then["timing"] or {}, now["timing"] or {}
    found = [
        *(_difference(name, then[name], now[name]) for name in _SHOWN),
        *(_difference(name, before.get(name), after.get(name), is_same_place) for name in _SHOWN_TIMES),
        *(_difference(name, there[name], here[name]) for name in _SHOWN_PLACE),
    ]
    return tuple(difference for difference in found if difference is not None)


def _difference(name: str, then: Any, now: Any, is_same_place: bool = True) -> Difference | None:
    if then == now:
        return None
    if name in {"verdict", "stage"}:
        return Difference(name, then, now, matters=True)
    if name == "new_ms" and then is not None and now is not None:
        is_close = math.isclose(then, now, rel_tol=TIME_TOLERANCE)
        return Difference(name, then, now, matters=is_same_place and not is_close)
    return Difference(name, then, now, matters=False)
