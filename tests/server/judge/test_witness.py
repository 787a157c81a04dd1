"""A stopped process that ran is noticed, one that stayed stopped is not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from server.judge.witness import Witness
from server.sandbox.process_table import ProcessTable, Target


@pytest.fixture
def spinner() -> Iterator[int]:
    """A stopped process that computes whenever it can."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    try:
        time.sleep(0.1)
        _stop(process.pid)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    while not ProcessTable().is_stopped(Target(root_pid=pid)):
        time.sleep(0.001)


def test_process_that_stays_stopped_has_not_run(spinner: int) -> None:
    witness = Witness(Target(root_pid=spinner))
    witness.mark()
    time.sleep(0.05)
    assert not witness.has_run()


@pytest.mark.parametrize("moving", [0, 3])
def test_clocks_that_still_move_are_read_until_they_stand(monkeypatch: pytest.MonkeyPatch, moving: int) -> None:
    """A task that is on its way off its core is charged for what holds it up there."""
    readings = [{1: float(number)} for number in range(moving)] + [{1: 100.0}] * 3
    monkeypatch.setattr("server.judge.witness._clocks", lambda _: readings.pop(0))
    witness = Witness(Target(root_pid=2))
    witness.mark()
    assert len(readings) == 1
    assert not witness.has_run()


def test_process_that_was_woken_and_stopped_again_has_run(spinner: int) -> None:
    witness = Witness(Target(root_pid=spinner))
    witness.mark()
    os.kill(spinner, signal.SIGCONT)
    time.sleep(0.05)
    _stop(spinner)
    assert witness.has_run()


def test_process_that_appears_counts_as_one_that_ran() -> None:
    session = subprocess.Popen(
        [sys.executable, "-c", "import os, time; time.sleep(0.3); os.fork(); time.sleep(60)"], start_new_session=True
    )
    try:
        witness = Witness(Target(root_pid=session.pid))
        witness.mark()
        deadline = time.monotonic() + 10
        while len(ProcessTable().pids(Target(root_pid=session.pid))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert witness.has_run()
    finally:
        os.killpg(session.pid, signal.SIGKILL)
        session.wait()


def test_process_that_has_ended_has_not_run(spinner: int) -> None:
    witness = Witness(Target(root_pid=spinner))
    witness.mark()
    os.kill(spinner, signal.SIGKILL)
    os.waitpid(spinner, 0)
    assert not witness.has_run()
