"""The doctor tries, and reports what it found."""

import sys
from dataclasses import replace

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


def test_root_that_cannot_give_uids_away_is_told_why(monkeypatch: pytest.MonkeyPatch, found: Isolation) -> None:
    """A submission never runs as root, so nothing could be evaluated."""
    weak = replace(found, uid=False, missing=("Python is installed where other users cannot read it",))
    monkeypatch.setattr("server.sandbox.isolation.available", lambda _: weak)
    monkeypatch.setattr("os.getuid", lambda: 0)
    checks = {check.name: check for check in doctor.run_checks(uid_base=62600, device_kind="cpu", with_imports=False)}
    assert checks["sandbox"].state is State.REFUSED
    assert "Python is installed where other users cannot read it" in checks["sandbox"].detail
    assert "inet_socket" not in checks


def test_probe_that_fails_before_it_begins_is_reported_by_its_last_words(
    monkeypatch: pytest.MonkeyPatch, found: Isolation
) -> None:
    lines = "import sys; print('Traceback', *range(20), 'cannot be confined', sep=chr(10))"
    with doctor._laboratory(62600, found, "cpu", (), ()) as laboratory:
        monkeypatch.setattr("server.sandbox.program.command", lambda *_: [sys.executable, "-c", lines])
        assert laboratory.attempt("inet_socket", "forks") == ("cannot be confined",) * 2


def test_level_of_isolation_is_reported(checks: dict[str, Check], found: Isolation) -> None:
    assert checks["isolation"].state is (State.OK if found.level == "strong" else State.WEAK)
