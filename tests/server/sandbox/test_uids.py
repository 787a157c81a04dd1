"""Uids belong to one server of a host at a time, also while it only finds out what the host allows."""

import os
import subprocess

import pytest

from server.errors import EvaluatorError
from server.sandbox import isolation, program, uids
from server.sandbox.uids import Claims
from tests.server.sandbox.candidates import TEST_UIDS


def test_claimed_uids_are_skipped_until_they_are_given_back() -> None:
    with Claims(TEST_UIDS, 2) as first:
        with Claims(TEST_UIDS, 2) as second:
            assert not set(first.uids) & set(second.uids)
        with Claims(TEST_UIDS, 3) as third:
            assert set(second.uids) < set(third.uids)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to run something under another uid")
def test_uid_under_which_something_runs_is_skipped() -> None:
    with Claims(TEST_UIDS, 1) as held:
        (uid,) = held.uids
    with subprocess.Popen(["sleep", "60"], user=uid) as other:
        with Claims(TEST_UIDS, 1) as claims:
            assert claims.uids[0] > uid
        other.kill()


def test_too_few_free_uids_are_our_fault_and_none_stays_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    with Claims(TEST_UIDS, 2) as held:
        pass
    monkeypatch.setattr(uids, "SEARCHED_UIDS", 1 + held.uids[1] - TEST_UIDS)
    with pytest.raises(EvaluatorError, match="expected 4096 free uids"):
        Claims(TEST_UIDS, 4096)
    with Claims(TEST_UIDS, 2) as again:
        assert again.uids == held.uids


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to have uids to give")
def test_host_is_tried_under_a_uid_that_nobody_else_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other server's warden would stop or kill what tries."""
    tried: list[int] = []
    usual = program.command

    def command(module: str, *arguments: str) -> list[str]:
        tried.append(int(arguments[0]))
        return usual(module, *arguments)

    monkeypatch.setattr(program, "command", command)
    with Claims(TEST_UIDS, 4) as held:
        isolation.available(TEST_UIDS)
    assert tried
    assert not set(tried) & set(held.uids)
