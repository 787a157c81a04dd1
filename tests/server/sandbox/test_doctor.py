"""The doctor tries, and reports what it found."""

import pytest

from server.errors import EvaluatorError
from server.sandbox import doctor
from server.sandbox.doctor import Check, State
from server.sandbox.isolation import Isolation


@pytest.fixture(scope="module")
def checks() -> dict[str, Check]:
    """All checks of this machine, with one of another part that fails."""

    def broken() -> Check:
        raise EvaluatorError("no round trip")

    found = doctor.run_checks(uid_base=62600, device_kind="cpu", with_imports=False, extra=[broken])
    return {check.name: check for check in found}


@pytest.mark.parametrize("name", sorted({*doctor.REFUSALS} - {"forks"}))
def test_attempt_is_refused_where_isolation_is_strong(checks: dict[str, Check], found: Isolation, name: str) -> None:
    if found.level != "strong":
        pytest.skip("isolation is weak here")
    assert checks[name].state is State.OK, checks[name].detail


@pytest.mark.parametrize("name", ["compiler", "thread_name", "kill", "freeze", "watchdog"])
def test_ability_is_found(checks: dict[str, Check], name: str) -> None:
    assert checks[name].state is State.OK, checks[name].detail


def test_check_of_another_part_that_fails_is_refused(checks: dict[str, Check]) -> None:
    assert checks["broken"] == Check("broken", State.REFUSED, "no round trip")


def test_level_of_isolation_is_reported(checks: dict[str, Check], found: Isolation) -> None:
    assert checks["isolation"].state is (State.OK if found.level == "strong" else State.WEAK)
