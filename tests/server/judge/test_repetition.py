"""A repetition begins only when nobody ran while its inputs were written; what may have been seen is not used."""

import os
from collections.abc import Iterator, Sequence

import pytest
import torch

from kernel_env.terms import Precision, Stage, Verdict
from server.judge.device import CpuDevice
from server.judge.distributions import Draw
from server.judge.exchange import Exchange
from server.judge.neighbours import Neighbours
from server.judge.peer import Peer, Stop
from server.judge.reference import Reference
from server.judge.repetition import EVICT_AFTER, LOST_LIMIT_S, PREPARATIONS, VERIFICATIONS, Budget, Repeater
from server.judge.watch import Watch
from server.judge.witness import Witness
from server.protocol import Channel
from server.sandbox.process_table import Target

SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
"""
BUSY_S = 10 * LOST_LIMIT_S


class Watched(CpuDevice):
    """A device whose watches say what a script says, then nothing."""

    def __init__(self, lost_s: Sequence[float]) -> None:
        super().__init__(threads=1)
        self.lost_s = list(lost_s)
        self.open = 0

    def watch(self) -> Watch:
        self.open += 1
        return self

    def end(self) -> float:
        self.open -= 1
        return self.lost_s.pop(0) if self.lost_s else 0.0


class Scene:
    """A repeater for a candidate that never runs."""

    def __init__(self, lost_s: Sequence[float], stage: Stage) -> None:
        self.device = Watched(lost_s)
        self.evictions = 0
        self.reference = Reference("relu", SOURCE, Precision.IEEE, True, self.device)
        ours, self.theirs = Channel.pair()
        self.peer = Peer(Channel(ours), os.pidfd_open(os.getpid()), freeze=lambda: True, kill=lambda: True)
        self.peer.stage = stage
        self.exchange = Exchange(self.device, self.reference)
        self.exchange.open_inputs(1, with_state=False)
        self.exchange.open_outputs(1 << 20)
        witness = Witness(Target(root_pid=2**22))  # nobody
        neighbours = Neighbours(lambda _: None, self._evict)
        self.repeater = Repeater(
            self.device, self.reference, self.peer, self.exchange, witness, neighbours, Budget(1.0, 1.0)
        )
        self.draw = Draw(1, self.reference.distributions[0])

    def _evict(self) -> None:
        self.evictions += 1

    def prepare(self) -> Draw:
        return self.repeater._prepare({0: self.draw}, is_watched=self.repeater._is_alone).draws[0]


@pytest.fixture
def scenes() -> Iterator[list[Scene]]:
    """Whatever a test puts here is closed after it."""
    made: list[Scene] = []
    yield made
    for scene in made:
        scene.peer.end()
        scene.theirs.close()
        scene.exchange.close()


def test_quiet_device_is_asked_once(scenes: list[Scene]) -> None:
    scene = Scene([], Stage.TIMING)
    scenes.append(scene)
    assert scene.prepare() == scene.draw
    assert (scene.evictions, scene.device.open) == (0, 0)


def test_inputs_written_while_somebody_ran_are_not_used(scenes: list[Scene]) -> None:
    scene = Scene([BUSY_S], Stage.TIMING)
    scenes.append(scene)
    used = scene.prepare()
    assert used.seed != scene.draw.seed
    assert used.distribution == scene.draw.distribution
    assert scene.evictions == 0


def test_hiccup_below_the_limit_is_nobody(scenes: list[Scene]) -> None:
    scene = Scene([0.5 * LOST_LIMIT_S], Stage.TIMING)
    scenes.append(scene)
    assert scene.prepare() == scene.draw


def test_neighbours_that_keep_the_device_busy_are_evicted(scenes: list[Scene]) -> None:
    scene = Scene([BUSY_S] * EVICT_AFTER, Stage.TIMING)
    scenes.append(scene)
    scene.prepare()
    assert scene.evictions == 1


def test_work_that_goes_on_without_neighbours_is_the_submissions(scenes: list[Scene]) -> None:
    scene = Scene([BUSY_S] * PREPARATIONS, Stage.TIMING)
    scenes.append(scene)
    with pytest.raises(Stop, match="running on the device before a call began") as stopped:
        scene.prepare()
    assert stopped.value.verdict is Verdict.TIMING_REJECTED
    assert (scene.evictions, scene.device.open) == (1, 0)


def test_others_may_use_the_device_while_nothing_is_timed(scenes: list[Scene]) -> None:
    """They are not stopped then, and an honest submission must not pay for them."""
    scene = Scene([BUSY_S] * PREPARATIONS, Stage.CORRECTNESS)
    scenes.append(scene)
    assert scene.prepare() == scene.draw


def test_outputs_written_before_the_clock_are_seen(scenes: list[Scene], monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene([], Stage.TIMING)
    scenes.append(scene)
    fill = scene.exchange.fill

    def fill_and_be_raced(draws: dict[int, Draw]) -> None:
        fill(draws)
        assert scene.exchange.outputs is not None
        scene.exchange.outputs.data.view(torch.int32).add_(1)

    monkeypatch.setattr(scene.exchange, "fill", fill_and_be_raced)
    with pytest.raises(Stop, match="before a call began"):
        scene.prepare()


def test_watch_ends_when_the_inputs_cannot_be_written(scenes: list[Scene], monkeypatch: pytest.MonkeyPatch) -> None:
    """A resident kernel must not outlive the memory it writes to."""
    scene = Scene([], Stage.TIMING)
    scenes.append(scene)

    def fail(_: dict[int, Draw]) -> None:
        raise MemoryError

    monkeypatch.setattr(scene.exchange, "fill", fail)
    with pytest.raises(MemoryError):
        scene.prepare()
    assert scene.device.open == 0


class Restless(Witness):
    """Says that somebody ran, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__(Target(root_pid=2**22))
        self.times = times

    def has_run(self) -> bool:
        self.times -= 1
        return self.times >= 0


@pytest.mark.parametrize("disturbed", range(VERIFICATIONS))
def test_comparison_that_somebody_disturbed_is_made_again(
    scenes: list[Scene], monkeypatch: pytest.MonkeyPatch, disturbed: int
) -> None:
    scene = Scene([], Stage.TIMING)
    scenes.append(scene)
    scene.repeater._witness = Restless(disturbed)
    compared: list[object] = []
    monkeypatch.setattr(scene.repeater, "_verify_calls", lambda calls, _: compared.append(calls))
    scene.repeater._verify_undisturbed([], {}, scene.exchange.fingerprint(None))
    assert len(compared) == disturbed + 1


def test_who_disturbs_every_comparison_is_refused(scenes: list[Scene]) -> None:
    scene = Scene([], Stage.TIMING)
    scenes.append(scene)
    scene.repeater._witness = Restless(VERIFICATIONS)
    with pytest.raises(Stop, match="ran while it was stopped, after its calls") as stopped:
        scene.repeater._verify_undisturbed([], {}, scene.exchange.fingerprint(None))
    assert stopped.value.verdict is Verdict.TIMING_REJECTED


def test_output_that_changed_while_it_was_compared_is_refused_at_once(scenes: list[Scene]) -> None:
    scene = Scene([], Stage.TIMING)
    scenes.append(scene)
    scene.repeater._witness = Restless(VERIFICATIONS)
    before = scene.exchange.fingerprint(None)
    assert scene.exchange.outputs is not None
    scene.exchange.outputs.data[100] += 1
    with pytest.raises(Stop, match="still written"):
        scene.repeater._verify_undisturbed([], {}, before)
