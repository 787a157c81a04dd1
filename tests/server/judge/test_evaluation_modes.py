"""Which failures of a capture lead to another process with a loop, and which are verdicts."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from kernel_env.terms import Precision, Stage, Verdict
from server.judge.device import CpuDevice
from server.judge.evaluation import Evaluation, Phases
from server.judge.neighbours import Neighbours
from server.judge.peer import CandidateGone, NotCapturable, Peer, Stop
from server.judge.reference import Reference
from server.judge.repetition import Budget
from server.judge.seeds import Seeds
from server.judge.witness import Witness
from server.protocol import Channel, Failure, encode_failed
from server.sandbox.process_table import Target

SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return []
"""


class Scene:
    """An evaluation, and the far end of its candidate's channel."""

    def __init__(self) -> None:
        ours, theirs = Channel.pair()
        device = CpuDevice(threads=1)
        self.far = Channel(theirs)
        pid = os.getpid()
        peer = Peer(Channel(ours), os.pidfd_open(pid), freeze=lambda: True, kill=lambda: True)
        self.evaluation = Evaluation(
            device,
            Reference("relu", SOURCE, Precision.IEEE, True, device),
            peer,
            Budget(5.0, 5.0),
            Neighbours(lambda _: None, lambda: None),
            Phases(),
            Witness(Target(root_pid=pid)),
            Seeds(),
        )

    def answer(self, packet: bytes | None) -> None:
        """Answer the next command; None hangs up instead."""

        def reply() -> None:
            self.far.receive(5.0)
            if packet is None:
                self.far.close()
            else:
                self.far.send(packet)

        threading.Thread(target=reply, daemon=True).start()


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Fresh for every test."""
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    made = Scene()
    yield made
    made.evaluation.close()
    made.far.close()


def test_module_that_cannot_be_captured_is_no_verdict(scene: Scene) -> None:
    scene.answer(encode_failed(Failure.NOT_CAPTURABLE, "operation not permitted when stream is capturing"))
    with pytest.raises(NotCapturable):
        scene.evaluation._prepare("graph", [0, 1])


def test_process_that_dies_while_it_captures_is_no_verdict_yet(scene: Scene) -> None:
    """torch may abort the process when a broken graph is collected."""
    scene.answer(None)
    with pytest.raises(NotCapturable):
        scene.evaluation._prepare("graph", [0, 1])


def test_claim_that_a_loop_cannot_be_captured_is_a_verdict(scene: Scene) -> None:
    """Otherwise a submission could ask for one process after the other."""
    scene.evaluation._peer.stage = Stage.CORRECTNESS
    scene.answer(encode_failed(Failure.NOT_CAPTURABLE, ""))
    with pytest.raises(Stop) as stop:
        scene.evaluation._prepare("eager", [0, 1])
    assert stop.value.verdict is Verdict.RUNTIME_ERROR


def test_process_that_dies_before_a_loop_is_gone(scene: Scene) -> None:
    scene.answer(None)
    with pytest.raises(CandidateGone):
        scene.evaluation._prepare("eager", [0, 1])


def test_lack_of_memory_while_capturing_is_a_verdict(scene: Scene) -> None:
    scene.answer(encode_failed(Failure.OUT_OF_MEMORY, "two calls do not fit"))
    with pytest.raises(Stop) as stop:
        scene.evaluation._prepare("graph", [0, 1])
    assert stop.value.verdict is Verdict.OUT_OF_MEMORY
