"""Places for candidates: how many, who is stopped for whom, and what becomes of a slot that changes hands."""

import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernel_env.models import Precision
from server.errors import Busy, EvaluatorError
from server.evaluator import places as module
from server.evaluator.candidate_process import CandidateSpec
from server.evaluator.child_programs import Zygote
from server.evaluator.places import Places
from server.sandbox.isolation import Isolation
from server.sandbox.limits import Limits
from server.sandbox.slots import SlotPool
from server.sandbox.warden_client import WardenClient

SPEC = CandidateSpec(
    "", "ModelNew", Precision.IEEE, (), 1.0, 1, "", (), Limits(), Isolation(False, 0, False, False, ()), 0
)


class FakeCandidate:
    """Remembers that it was ended."""

    def __init__(self, spec: object, slot: Any, pool: "FakePool", zygote: "FakeZygote", paused_s: Any) -> None:
        assert zygote.is_alive
        self.slot_index, self.paused_s, self.ends = slot.index, paused_s, 0
        self._pool = pool

    def close(self) -> None:
        if self.ends == 0:
            self._pool.free.insert(0, self.slot_index)
        self.ends += 1


@dataclass
class FakePool:
    """Slots by number; the one that was freed last comes first."""

    free: list[int] = field(default_factory=lambda: [0, 1, 2])

    def acquire(self, timeout_s: float) -> SimpleNamespace:
        return SimpleNamespace(index=self.free.pop(0))


@dataclass
class FakeWarden:
    """Remembers which slots are stopped."""

    stopped: set[int] = field(default_factory=set)

    def freeze(self, slots: tuple[int, ...]) -> None:
        self.stopped |= set(slots)

    def thaw(self, slots: tuple[int, ...]) -> None:
        self.stopped -= set(slots)


@dataclass
class FakeZygote:
    """Alive until told otherwise."""

    is_alive: bool = True

    def wait_ready(self) -> None:
        assert self.is_alive

    def close(self) -> None:
        self.is_alive = False


@dataclass
class Made:
    """Places with what they stand on."""

    places: Places
    warden: FakeWarden
    zygotes: list[FakeZygote]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.setattr(module, "Candidate", FakeCandidate)
    warden, zygotes = FakeWarden(), []

    def start() -> Zygote:
        zygotes.append(FakeZygote())
        return cast(Zygote, zygotes[-1])

    places = Places(2, 8, cast(SlotPool, FakePool()), cast(WardenClient, warden), start)
    return Made(places, warden, zygotes)


def test_quiet_stops_the_others_and_lets_them_continue(made: Made) -> None:
    with made.places.candidate("cpu", SPEC) as own, made.places.candidate("cpu", SPEC) as other:
        made.places.quiet("cpu", own.slot_index, on=True)
        assert made.warden.stopped == {other.slot_index}
        made.places.quiet("cpu", own.slot_index, on=False)
        assert made.warden.stopped == set()


def test_candidate_that_starts_while_another_is_timed_is_stopped(made: Made) -> None:
    with made.places.candidate("cpu", SPEC) as own:
        made.places.quiet("cpu", own.slot_index, on=True)
        with made.places.candidate("cpu", SPEC) as late, made.places.candidate("cuda:1", SPEC) as elsewhere:
            assert made.warden.stopped == {late.slot_index}
            assert elsewhere.slot_index not in made.warden.stopped
            made.places.quiet("cpu", own.slot_index, on=False)
            assert made.warden.stopped == set()


def test_time_in_which_a_candidate_was_stopped_is_counted(made: Made) -> None:
    with made.places.candidate("cpu", SPEC) as own, made.places.candidate("cpu", SPEC) as other:
        paused_s = cast(FakeCandidate, other).paused_s
        made.places.quiet("cpu", own.slot_index, on=True)
        time.sleep(0.02)
        assert paused_s() >= 0.02
        made.places.quiet("cpu", own.slot_index, on=False)
        total_s = paused_s()
        time.sleep(0.02)
        assert paused_s() == total_s
        assert cast(FakeCandidate, own).paused_s() == 0.0


def test_what_was_stopped_for_a_judge_that_ended_continues(made: Made) -> None:
    with made.places.candidate("cpu", SPEC) as own, made.places.candidate("cpu", SPEC):
        made.places.quiet("cpu", own.slot_index, on=True)
        made.places.loud("cpu")
        assert made.warden.stopped == set()


def test_slot_that_changed_hands_stays_with_its_new_candidate(made: Made) -> None:
    """The first candidate is ended before its block ends, and a second one gets its slot meanwhile."""
    timed = made.places.candidate("cpu", SPEC)
    own = timed.__enter__()
    with made.places.candidate("cpu", SPEC) as first:
        made.places.end("cpu", first)
        second = made.places.candidate("cpu", SPEC)
        heir = second.__enter__()
        assert heir.slot_index == first.slot_index
    made.places.quiet("cpu", own.slot_index, on=True)
    assert made.warden.stopped == {heir.slot_index}
    assert cast(FakeCandidate, heir).ends == 0
    second.__exit__(None, None, None)
    timed.__exit__(None, None, None)


def test_no_more_submissions_than_places_run_at_a_time(made: Made) -> None:
    with made.places.reserved("a", None, None), made.places.reserved("a", None, None):
        with pytest.raises(Busy, match="did not begin"), made.places.reserved("a", time.monotonic() + 0.01, None):
            pass
        with pytest.raises(Busy, match="gone"), made.places.reserved("a", None, lambda: True):
            pass
    with made.places.reserved("a", time.monotonic(), None):
        pass


def test_waiting_ends_when_the_evaluator_is_closed(made: Made) -> None:
    with made.places.reserved("a", None, None), made.places.reserved("a", None, None):
        made.places.close()
        with pytest.raises(EvaluatorError), made.places.reserved("a", None, None):
            pass


def test_zygote_that_ended_is_replaced(made: Made) -> None:
    made.zygotes[0].is_alive = False
    with made.places.candidate("cpu", SPEC):
        assert len(made.zygotes) == 2


def test_zygote_is_not_replaced_after_the_end(made: Made) -> None:
    made.places.close()
    with pytest.raises(EvaluatorError), made.places.candidate("cpu", SPEC):
        pass
    assert len(made.zygotes) == 1
