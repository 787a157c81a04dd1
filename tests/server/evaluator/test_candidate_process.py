"""A candidate as the evaluator holds it, with a stand-in for the zygote that answers as a candidate would."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from kernel_env.models import Precision, Stage, Verdict
from server.errors import EvaluatorError
from server.evaluator.candidate_process import Candidate, CandidateSpec
from server.evaluator.child_programs import Zygote
from server.protocol import encode_loaded, encode_ready
from server.sandbox.isolation import Isolation
from server.sandbox.limits import Limits
from server.sandbox.slots import Slot, SlotPool

SPEC = CandidateSpec(
    "x = 1", "ModelNew", Precision.IEEE, (), 0.2, 1, "", (), Limits(), Isolation(False, 0, False, False, ()), 0
)


@dataclass
class FakePool:
    """Counts."""

    releases: int = 0

    def watch(self, *_: object, **__: object) -> None:
        return

    def release(self, slot: Slot) -> None:
        self.releases += 1


@dataclass
class FakeZygote:
    """Starts a process that does nothing, and sends packets in its name, each after a while."""

    packets: tuple[tuple[float, bytes], ...]
    code: int | None = None
    """How the process ends, which it does after the last packet; None if it lives on."""
    lingers_s: float = 0.0
    """From the end of its channel to its own."""
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    senders: list[threading.Thread] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)

    def spawn(self, channel_fd: int, log_fd: int, **_: object) -> int:
        fd = os.dup(channel_fd)
        self.children.append(subprocess.Popen(["sleep", "60"]))
        self.senders.append(threading.Thread(target=self._send, args=(fd,)))
        self.senders[-1].start()
        return self.children[-1].pid

    def _send(self, fd: int) -> None:
        for delay_s, packet in self.packets:
            time.sleep(delay_s)
            with suppress(BrokenPipeError):
                os.write(fd, packet)
        if self.code is None:
            self.kept.append(fd)
        else:
            os.close(fd)
            time.sleep(self.lingers_s)
            self.children[-1].kill()

    def exit_code(self, pid: int) -> int | None:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return self.code if state == "Z" else None


@pytest.fixture
def slot(tmp_path: Path) -> Slot:
    log = tmp_path / "log"
    log.touch()
    return Slot(0, None, None, None, str(tmp_path), str(log))


@pytest.fixture
def zygotes() -> Iterator[list[FakeZygote]]:
    made: list[FakeZygote] = []
    yield made
    for zygote in made:
        for child in zygote.children:
            child.kill()
            child.wait()
        for sender in zygote.senders:
            sender.join()
        for fd in zygote.kept:
            os.close(fd)


def _candidate(slot: Slot, pool: FakePool, zygote: FakeZygote, paused_s: float = 0.0) -> Candidate:
    start = time.monotonic()
    return Candidate(
        SPEC,
        slot,
        cast(SlotPool, pool),
        cast(Zygote, zygote),
        lambda: min(paused_s, time.monotonic() - start),
    )


def test_end_before_the_process_is_confined_is_our_fault(slot: Slot, zygotes: list[FakeZygote]) -> None:
    zygotes.append(FakeZygote((), code=70))
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(EvaluatorError, match="confined"):
        _candidate(slot, FakePool(), zygotes[0])
    assert len(set(Path("/proc/self/fd").iterdir())) == len(before)


def test_scratch_directory_that_is_gone_is_our_fault(slot: Slot) -> None:
    with pytest.raises(EvaluatorError, match="could not be started"):
        _candidate(replace(slot, scratch="/nowhere"), FakePool(), FakeZygote(()))


@pytest.mark.parametrize("lingers_s", [0.0, 0.3])
def test_end_while_it_loads_is_a_verdict(slot: Slot, zygotes: list[FakeZygote], lingers_s: float) -> None:
    """The process may end well after its connection."""
    zygotes.append(FakeZygote(((0.0, encode_ready()),), code=-11, lingers_s=lingers_s))
    candidate = _candidate(slot, FakePool(), zygotes[0])
    failed = candidate.load()
    candidate.close()
    assert failed is not None
    assert (failed.verdict, failed.stage) == (Verdict.COMPILE_ERROR, Stage.COMPILE)
    assert "SIGSEGV" in failed.text


def test_slot_is_given_back_once(slot: Slot, zygotes: list[FakeZygote]) -> None:
    """By the second time it may be somebody else's."""
    zygotes.append(FakeZygote(((0.0, encode_ready()),)))
    pool = FakePool()
    candidate = _candidate(slot, pool, zygotes[0])
    candidate.close()
    candidate.close()
    assert pool.releases == 1


def test_time_in_which_it_was_stopped_for_others_is_not_its_own(slot: Slot, zygotes: list[FakeZygote]) -> None:
    zygotes += [FakeZygote(((0.0, encode_ready()), (delay_s, encode_loaded()))) for delay_s in (0.5, 0.8)]
    patient, hasty = (_candidate(slot, FakePool(), zygotes[i], paused_s) for i, paused_s in enumerate((0.45, 0.0)))
    late, failed = patient.load(), hasty.load()
    patient.close()
    hasty.close()
    assert late is None
    assert failed is not None
    assert failed.verdict is Verdict.TIMEOUT
