"""Event lines: one JSON object each, and no reader can hold up or fail the server."""

import json
import os
import time
from pathlib import Path

from kernel_env.models import KernelObservation, Stage, Verdict
from server.events import STDOUT_BACKLOG, EventLog, reset_event, step_event

SECRET = "def secret_code"


def observation() -> KernelObservation:
    return KernelObservation(
        episode_id="e",
        task_id="relu",
        problem=SECRET,
        prompt=SECRET,
        feedback=SECRET,
        seed=987654321,
        verdict=Verdict.PASSED,
        stage=Stage.DONE,
        reward=0.5,
    )


def test_a_line_in_the_file_is_one_json_object_without_code_or_seed(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path, fd=None)
    log.write(reset_event("s", observation()))
    log.write(step_event("s", observation(), "abc"))
    first, second = path.read_text().splitlines()
    assert json.loads(first)["event"] == "reset"
    assert json.loads(second) == json.loads(second) | {
        "event": "step",
        "session_id": "s",
        "episode_id": "e",
        "verdict": "passed",
        "reward": 0.5,
        "code_sha": "abc",
    }
    assert SECRET not in path.read_text()
    assert "987654321" not in path.read_text()


def test_a_reader_gets_every_line() -> None:
    reader, writer = os.pipe()
    log = EventLog(fd=writer)
    for _ in range(10):
        log.write(step_event("s", observation(), "abc"))
    log.close()
    os.close(writer)
    with os.fdopen(reader) as lines:
        assert [json.loads(line)["event"] for line in lines] == ["step"] * 10


def test_a_pipe_that_nobody_drains_delays_nothing() -> None:
    reader, writer = os.pipe()
    log = EventLog(fd=writer)
    began = time.monotonic()
    for _ in range(STDOUT_BACKLOG + 500):  # far more than a pipe holds
        log.write(step_event("s", observation(), "abc"))
    assert time.monotonic() - began < 5.0
    os.close(reader)  # the blocked writer gets EPIPE and ends
    log.close()
    os.close(writer)


def test_a_reader_that_is_gone_and_a_log_that_cannot_be_written_raise_nothing(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    log = EventLog(tmp_path / "missing" / "log", fd=writer)
    log.write(step_event("s", observation(), "abc"))
    log.close()
    log.write(step_event("s", observation(), "abc"))
    log.close()
    os.close(writer)
