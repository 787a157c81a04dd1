"""Whatever a candidate sends, or does not send, ends in a packet or in a verdict."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_env.terms import Stage, Verdict
from server.judge import peer as peer_module
from server.judge.peer import MAX_CALLS, CandidateGone, Peer, Stop
from server.protocol import (
    GO,
    MAX_PACKET_BYTES,
    Called,
    Channel,
    Failure,
    Plan,
    Reply,
    encode_called,
    encode_done,
    encode_failed,
    encode_loaded,
    encode_prepared,
)
from server.verdicts import NOT_ITS_CHANNEL


@dataclass
class Warden:
    """Counts what it is asked for."""

    can_freeze: bool = True
    asked: list[str] = field(default_factory=list)

    def freeze(self) -> bool:
        self.asked.append("freeze")
        return self.can_freeze

    def kill(self) -> bool:
        self.asked.append("kill")
        return True


@dataclass
class Pair:
    """A judge's peer and the candidate's end of its channel."""

    peer: Peer
    far: Channel
    warden: Warden


@pytest.fixture
def pair() -> Iterator[Pair]:
    near, far = Channel.pair()
    warden = Warden()
    ourselves = os.pidfd_open(os.getpid())  # to continue a process that runs changes nothing
    made = Pair(Peer(Channel(near), ourselves, warden.freeze, warden.kill), Channel(far), warden)
    yield made
    made.peer.end()
    made.far.close()


def test_a_command_returns_its_reply(pair: Pair) -> None:
    pair.far.send(encode_prepared(3))
    assert pair.peer.command("attach", Reply.PREPARED, sets=3).prepared == 3
    assert pair.far.receive(1.0) == b'{"op":"attach","sets":3}'


def test_descriptors_go_beside_a_command(pair: Pair) -> None:
    read_end, write_end = os.pipe()
    pair.far.send(encode_loaded())
    pair.peer.command("load", Reply.LOADED, fds=[write_end])
    _, fds = pair.far.receive_with_fds(2, 1.0)
    os.write(fds[0], b"!")
    assert os.read(read_end, 1) == b"!"
    for fd in (read_end, write_end, *fds):
        os.close(fd)


@pytest.mark.parametrize(
    ("failure", "stage", "verdict"),
    [
        (Failure.EXCEPTION, Stage.COMPILE, Verdict.COMPILE_ERROR),
        (Failure.EXCEPTION, Stage.CORRECTNESS, Verdict.RUNTIME_ERROR),
        (Failure.EXCEPTION, Stage.TIMING, Verdict.RUNTIME_ERROR),
        (Failure.OUT_OF_MEMORY, Stage.COMPILE, Verdict.OUT_OF_MEMORY),
        (Failure.OUT_OF_MEMORY, Stage.TIMING, Verdict.OUT_OF_MEMORY),
        (Failure.CONSTRUCTOR, Stage.COMPILE, Verdict.COMPILE_ERROR),
        (Failure.COMPILATION, Stage.CORRECTNESS, Verdict.COMPILE_ERROR),
        (Failure.STRUCTURE, Stage.CORRECTNESS, Verdict.INCORRECT_STRUCTURE),
        (Failure.NOT_CAPTURABLE, Stage.CORRECTNESS, Verdict.RUNTIME_ERROR),
    ],
)
def test_a_reported_failure_becomes_its_verdict(pair: Pair, failure: Failure, stage: Stage, verdict: Verdict) -> None:
    pair.peer.stage = stage
    pair.far.send(encode_failed(failure, "line 3: boom"))
    with pytest.raises(Stop) as stopped:
        pair.peer.command("call", Reply.CALLED)
    assert (stopped.value.verdict, stopped.value.stage, stopped.value.text) == (verdict, stage, "line 3: boom")


@pytest.mark.parametrize(
    "packet", [b"nonsense", b"\x05", encode_done(1), encode_loaded(), b"x" * (MAX_PACKET_BYTES + 1)]
)
def test_a_packet_that_makes_no_sense_is_the_submissions_fault(pair: Pair, packet: bytes) -> None:
    pair.far.send(packet)
    with pytest.raises(Stop) as stopped:
        pair.peer.command("call", Reply.CALLED)
    assert (stopped.value.verdict, stopped.value.text) == (Verdict.RUNTIME_ERROR, NOT_ITS_CHANNEL)


def test_silence_ends_in_a_timeout(pair: Pair) -> None:
    with pytest.raises(Stop) as stopped:
        pair.peer.command("call", Reply.CALLED, timeout_s=0.05)
    assert stopped.value.verdict is Verdict.TIMEOUT


def test_a_candidate_that_does_not_read_ends_in_a_timeout(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "MESSAGE_TIMEOUT_S", 0.05)

    def send_until_full() -> None:
        for _ in range(10_000):
            pair.peer.send(b"x" * 10_000)

    with pytest.raises(Stop) as stopped:
        send_until_full()
    assert stopped.value.verdict is Verdict.TIMEOUT


def test_a_candidate_that_ended_is_gone_not_guilty_yet(pair: Pair) -> None:
    pair.peer.stage = Stage.TIMING
    pair.far.close()
    with pytest.raises(CandidateGone) as gone:
        pair.peer.receive(Reply.DONE, 1.0)
    assert gone.value.stage is Stage.TIMING
    with pytest.raises(CandidateGone):
        pair.peer.send(b"x")
    with pytest.raises(CandidateGone):
        pair.peer.go(Plan.ALL, 1)


def test_the_go_packet_carries_plan_and_token(pair: Pair) -> None:
    pair.peer.go(Plan.SINGLE + 7, 2**64 - 1)
    assert GO.unpack(pair.far.receive(1.0)) == (b"R", 10, 2**64 - 1)


def test_the_outputs_of_a_run_are_described_one_by_one(pair: Pair) -> None:
    calls = [Called(i, 0, "N", ()) for i in (2, 0, 1)]
    pair.far.send(encode_prepared(3))
    for called in calls:
        pair.far.send(encode_called(called))
    assert pair.peer.describe() == calls


def test_more_descriptions_than_a_repetition_can_have_are_refused(pair: Pair) -> None:
    pair.far.send(encode_prepared(MAX_CALLS + 1))
    with pytest.raises(Stop) as stopped:
        pair.peer.describe()
    assert stopped.value.text == NOT_ITS_CHANNEL


def test_descriptions_that_drip_in_do_not_hold_the_device(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "MESSAGE_TIMEOUT_S", 0.2)
    ended = threading.Event()

    def drip() -> None:
        pair.far.send(encode_prepared(MAX_CALLS))
        while not ended.wait(0.05):
            pair.far.send(encode_called(Called(0, 0, "N", ())))

    thread = threading.Thread(target=drip)
    thread.start()
    start = time.monotonic()
    with pytest.raises(Stop) as stopped:
        pair.peer.describe()
    ended.set()
    thread.join()
    assert stopped.value.verdict is Verdict.TIMEOUT
    assert time.monotonic() - start < 5.0


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(packet=st.binary(min_size=1, max_size=300), expected=st.sampled_from(list(Reply)))
def test_any_bytes_end_in_the_expected_packet_or_in_a_stop(pair: Pair, packet: bytes, expected: Reply) -> None:
    pair.far.send(packet)
    try:
        outcome: Reply | Verdict = pair.peer.receive(expected, 1.0).kind
    except Stop as stop:
        outcome = stop.verdict
    assert outcome in {
        expected,
        Verdict.RUNTIME_ERROR,
        Verdict.COMPILE_ERROR,
        Verdict.OUT_OF_MEMORY,
        Verdict.INCORRECT_STRUCTURE,
    }


def test_a_candidate_that_cannot_be_stopped_is_rejected(pair: Pair) -> None:
    pair.peer.freeze()
    pair.warden.can_freeze = False
    with pytest.raises(Stop) as stop:
        pair.peer.freeze()
    assert stop.value.verdict is Verdict.TIMING_REJECTED


def test_ending_twice_kills_and_closes_once() -> None:
    near, far = Channel.pair()
    warden = Warden()
    pidfd = os.pidfd_open(os.getpid())
    peer = Peer(Channel(near), pidfd, warden.freeze, warden.kill)
    peer.end()
    peer.end()
    assert warden.asked[0] == "kill"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pidfd)
    assert far.recv(10) == b""
    far.close()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]


def wait_for_state(pid: int, wanted: str) -> None:
    end = time.monotonic() + 10
    while state_of(pid) not in wanted and time.monotonic() < end:
        time.sleep(0.01)
    assert state_of(pid) in wanted


@pytest.mark.parametrize("how", ["go", "resume"])
def test_a_stopped_candidate_continues_when_it_may(how: str) -> None:
    child = subprocess.Popen([sys.executable, "-I", "-c", "import time; time.sleep(60)"])
    near, far = Channel.pair()
    peer = Peer(Channel(near), os.pidfd_open(child.pid), lambda: True, lambda: True)
    try:
        child.send_signal(signal.SIGSTOP)
        wait_for_state(child.pid, "T")
        if how == "go":
            peer.go(Plan.NONE, 1)
        else:
            peer.resume()
        wait_for_state(child.pid, "SR")
        child.kill()
        child.wait()
        peer.resume()  # nobody is there any more, and that is no error of ours
    finally:
        peer.end()
        far.close()
        child.kill()
        child.wait()
