"""A slot is handed out to one candidate at a time, and clean."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from server.errors import Busy
from server.sandbox.slots import SlotPool

ABSENT_TIMEOUT_S = 0.05


def test_slots_in_use_differ_in_everything(host: Any) -> None:
    with host.slot() as one, host.slot() as two:
        assert one.index != two.index
        assert one.scratch != two.scratch
        assert one.log != two.log
        assert (one.uid is None) or one.uid != two.uid


def test_pool_is_busy_when_every_slot_is_taken(host: Any) -> None:
    with host.slot(), host.slot(), pytest.raises(Busy):
        host.pool.acquire(ABSENT_TIMEOUT_S)


def test_released_slot_comes_back_with_an_empty_directory(host: Any) -> None:
    with host.slot() as before:
        Path(before.scratch, "left").touch()
    with host.slot() as after:
        assert list(Path(after.scratch).iterdir()) == []
        assert after.scratch != before.scratch
    assert not Path(before.scratch).exists()
    assert not Path(before.log).exists()


def test_scratch_belongs_to_the_slot_and_the_log_does_not(strong: Any) -> None:
    with strong.slot() as slot:
        assert Path(slot.scratch).stat().st_uid == slot.uid
        assert Path(slot.log).stat().st_uid == os.getuid()
        assert Path(slot.log).stat().st_mode & 0o777 == 0o600
        assert not Path(slot.log).is_relative_to(slot.scratch)


def test_release_ends_what_still_runs(host: Any) -> None:
    slot = host.pool.acquire(5.0)
    if not host.has_uid and os.getuid() == 0:
        os.chown(slot.scratch, 62900, 62900)
    with host.running(slot, "import time; print('up', flush=True); time.sleep(60)") as process:
        assert process.stdout.readline() == b"up\n"
        host.pool.release(slot)
        assert process.wait(5) == -9
    assert host.pool.held_back == 0


def test_slot_with_a_directory_that_cannot_be_removed_is_held_back(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = host.pool.acquire(5.0)
    with monkeypatch.context() as patch:
        patch.setattr("server.sandbox.slots.scratch.remove", lambda *_, **__: False)
        host.pool.release(slot)
        assert host.pool.held_back == 1
    with host.slot(), host.slot():  # the second takes the slot, cleaned by now
        assert host.pool.held_back == 0


def test_waiting_caller_gets_the_slot_that_is_released(host: Any) -> None:
    with host.slot():
        taken = host.pool.acquire(1.0)
        timer = threading.Timer(0.1, host.pool.release, [taken])
        timer.start()
        began = time.monotonic()
        again = host.pool.acquire(10.0)
        assert time.monotonic() - began < 5
        timer.join()
        host.pool.release(again)


def test_pool_without_slots_cannot_be_built(host: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one"):
        SlotPool(62000, 0, tmp_path, True, host.warden)
