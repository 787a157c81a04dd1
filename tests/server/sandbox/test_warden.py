"""The warden stops, kills and watches exactly the processes of its slots."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from server.errors import EvaluatorError
from server.sandbox.limits import Limits
from server.sandbox.process_table import ProcessTable, Target
from server.sandbox.slots import SlotPool
from server.sandbox.warden_client import WardenClient, start_warden
from server.sandbox.warden_wire import Watch
from tests.server.sandbox.candidates import wait_for

BUSY_THREADS = """
import threading, time
def beat(number):
    count = 0
    while True:
        count += 1
        open(f"beat{number}", "w").write(str(count))
for number in range(4):
    threading.Thread(target=beat, args=(number,), daemon=True).start()
time.sleep(0.1)
open("up", "w").close()
time.sleep(60)
"""
SCATTERED = """
import os, signal, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
        os._exit(0)
time.sleep(0.2)
print("up", flush=True)
time.sleep(60)
"""


def beats(scratch: str) -> list[str]:
    """What the threads wrote last."""
    return [path.read_text() for path in sorted(Path(scratch).glob("beat*"))]


def test_freeze_stops_every_thread_and_thaw_resumes_them(host: Any) -> None:
    with host.slot() as slot, host.running(slot, BUSY_THREADS):
        assert wait_for(Path(slot.scratch, "up").exists)
        assert host.warden.freeze([slot.index]).ok
        first = beats(slot.scratch)
        time.sleep(0.1)
        assert beats(slot.scratch) == first
        host.warden.thaw([slot.index])
        assert wait_for(lambda: beats(slot.scratch) != first)


def test_frozen_candidate_can_be_killed(host: Any) -> None:
    with host.slot() as slot, host.running(slot, BUSY_THREADS) as process:
        assert wait_for(Path(slot.scratch, "up").exists)
        host.warden.freeze([slot.index])
        assert host.warden.kill([slot.index]).ok
        assert process.wait(5) == -signal.SIGKILL


def test_freeze_waits_for_a_task_that_waits_for_a_stopped_child(host: Any) -> None:
    """A process inside vfork cannot stop before its child has gone on."""
    source = """
import subprocess, time
open("up", "w").close()
stop_at = time.monotonic() + 20
while time.monotonic() < stop_at:
    subprocess.run(["/bin/true"])
"""
    with host.slot() as slot, host.running(slot, source):
        assert wait_for(Path(slot.scratch, "up").exists)
        for _ in range(10):
            assert host.warden.freeze([slot.index], deadline_s=2.0).ok
            host.warden.thaw([slot.index])


def test_processes_that_left_session_and_parent_are_killed(strong: Any) -> None:
    with strong.slot() as slot, strong.unconfined(slot, SCATTERED) as process:
        assert process.stdout.readline() == b"up\n"
        assert strong.warden.census([slot.index])[0].processes >= 4
        assert strong.warden.kill([slot.index]).ok
        assert strong.warden.census([slot.index])[0].processes == 0


def test_orphans_in_groups_of_their_own_are_killed(host: Any) -> None:
    source = SCATTERED.replace("os.setsid()", "os.setpgid(0, 0)")
    with host.slot() as slot, host.running(slot, source) as process:
        assert process.stdout.readline() == b"up\n"
        assert host.warden.census([slot.index])[0].processes >= 4
        assert host.warden.kill([slot.index]).ok
        assert host.warden.census([slot.index])[0].processes == 0


def test_kill_spares_the_other_slot(strong: Any) -> None:
    with (
        strong.slot() as one,
        strong.slot() as two,
        strong.running(one, BUSY_THREADS),
        strong.running(two, BUSY_THREADS) as other,
    ):
        assert wait_for(Path(two.scratch, "up").exists)
        strong.warden.kill([one.index])
        assert other.poll() is None


def idle_pair(place: Any, uid: int | None) -> tuple[Any, WardenClient, subprocess.Popen[bytes]]:
    """A warden of its own that watches one sleeping process."""
    started = start_warden(2)
    user = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    process = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True, cwd="/", **user)  # type: ignore[call-overload]
    directory = str(place("idle"))
    client = WardenClient(started.sockets[1])
    client.watch(
        Watch(
            slot=0,
            scratch=directory,
            log=directory + "/log",
            limits=Limits(),
            uid=uid,
            spare_uid=None if uid is None else uid + 1,
            root_pid=process.pid if uid is None else None,
        )
    )
    return started, client, process


@pytest.fixture(params=["strong", "weak"])
def own_uid(request: pytest.FixtureRequest) -> int | None:
    """A uid for a process outside of the pool, or none."""
    if request.param == "weak":
        return None
    if os.getuid() != 0:
        pytest.skip("not root")
    return 62500


def test_candidates_die_when_the_server_hangs_up(place: Any, own_uid: int | None) -> None:
    started, client, process = idle_pair(place, own_uid)
    started.sockets[0].close()
    assert process.wait(10) == -signal.SIGKILL
    assert started.process.wait(10) == 0
    client.close()
    started.close()


def test_candidates_die_with_the_judge_that_watched_them(place: Any, own_uid: int | None) -> None:
    started, client, process = idle_pair(place, own_uid)
    client.close()
    assert process.wait(10) == -signal.SIGKILL
    assert started.process.poll() is None
    started.close()


def test_candidates_die_when_the_server_is_killed(place: Any) -> None:
    program = f"""
import subprocess, sys, time
from server.sandbox.warden_client import WardenClient, start_warden
from server.sandbox.warden_wire import Watch
from server.sandbox.limits import Limits
process = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
started = start_warden(1)
WardenClient(started.sockets[0]).watch(Watch(0, {str(place("server"))!r}, "/none", Limits(), root_pid=process.pid))
print(process.pid, flush=True)
time.sleep(60)
"""
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert server.stdout is not None
    candidate = Path(f"/proc/{int(server.stdout.readline())}/stat")
    server.kill()
    server.communicate()
    assert wait_for(lambda: not candidate.exists() or b") Z" in candidate.read_bytes())


def test_warden_ignores_the_signals_of_a_terminal(place: Any) -> None:
    started, client, process = idle_pair(place, None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        started.process.send_signal(number)
    assert client.census([0])[0].processes == 1
    client.close()
    process.wait(10)
    started.close()


def test_silent_warden_is_our_fault(place: Any) -> None:
    started, client, process = idle_pair(place, None)
    started.process.kill()
    with pytest.raises(EvaluatorError, match="did not answer"):
        client.census([0])
    process.kill()
    process.wait()
    started.close()


def test_unknown_slot_is_refused_and_the_warden_goes_on(place: Any) -> None:
    started, client, process = idle_pair(place, None)
    with pytest.raises(EvaluatorError, match="not watched"):
        client.freeze([0, 7])
    assert client.census([0])[0].processes == 1
    client.close()
    process.wait(10)
    started.close()


def test_garbage_is_answered_with_a_refusal() -> None:
    started = start_warden(1)
    started.sockets[0].send(b"{}")
    started.sockets[0].settimeout(10)
    assert b'"ok":false' in started.sockets[0].recv(1000)
    started.close()


@pytest.mark.parametrize(("uid", "spare"), [(0, 5), (-1, 5), (5, 5), (5, 0), (5, None)])
def test_watch_on_root_or_without_a_spare_uid_cannot_be_built(uid: int, spare: int | None) -> None:
    with pytest.raises(ValueError, match=r"uid|root"):
        Watch(0, "/", "/log", Limits(), uid=uid, spare_uid=spare)


@pytest.mark.parametrize("pid", [0, 1, -1])
def test_init_cannot_be_a_target(pid: int) -> None:
    with pytest.raises(ValueError, match="init"):
        Target(root_pid=pid)


def test_name_of_a_process_cannot_forge_its_state() -> None:
    source = "import ctypes, time; ctypes.CDLL(None).prctl(15, b') T 1 1 1'); print(flush=True); time.sleep(30)"
    process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    assert not ProcessTable().is_stopped(Target(root_pid=process.pid))
    process.kill()
    process.communicate()


def test_two_pools_never_share_a_uid(strong: Any, place: Any) -> None:
    with strong.slot() as slot:
        other = SlotPool(slot.uid, 1, place("other") / "slots", False, strong.warden)
        theirs = other.acquire(1.0)
        assert theirs.uid not in {slot.uid, slot.spare_uid}
        assert theirs.spare_uid not in {slot.uid, slot.spare_uid}
        other.release(theirs)
        other.close()
