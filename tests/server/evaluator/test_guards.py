"""Every guard is one: its exploit is refused with it, and paid without it."""

from pathlib import Path

import pytest

from bench.guards import OUT, case_of, is_paid, outcome
from bench.lines import read
from server.evaluator.evaluator import Evaluator
from tests.evaluations import small_settings
from tests.without import GUARDS, evaluator_without, guard


def test_every_guard_was_tried_with_its_exploit_as_it_is() -> None:
    lines = read(OUT)
    assert set(lines) == {guard.name for guard in GUARDS}
    for each in GUARDS:
        assert lines[each.name]["digest"] == case_of(each).digest, f"run `python -m bench.guards --only {each.name}`"
        assert lines[each.name]["ok"], each.name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fresh_inputs", "poison"])
def test_without_it_its_exploit_is_paid(evaluator: Evaluator, tmp_path: Path, name: str) -> None:
    case = case_of(guard(name))
    assert not outcome(evaluator, case)["through"]
    with evaluator_without(guard(name), small_settings(tmp_path)) as other:
        assert is_paid(case, outcome(other, case))
