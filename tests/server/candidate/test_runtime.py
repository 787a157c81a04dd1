"""The loop of a candidate, in a thread, as the judge's commands find it; and what it says of outputs of every form."""

import threading
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from server.candidate.memory import CpuMemory
from server.candidate.runtime import Candidate, decode_arguments, describe_structure
from server.judge.device import Arena, CpuDevice
from server.protocol import (
    DTYPES,
    GO,
    OTHER_DTYPE,
    Called,
    Channel,
    Failure,
    Packet,
    Plan,
    Region,
    Reply,
    decode,
    encode_command,
)

Both = namedtuple("Both", "first second")  # noqa: PYI024 - what submissions return

SCALE = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.factor = factor
    def forward(self, x, power):
        return x * self.weight * self.factor + power
"""


@dataclass
class Judge:
    """The other end, with memory of its own."""

    channel: Channel
    device: CpuDevice
    directory: Path
    inputs: Arena
    outputs: Arena

    def ask(self, op: str, fds: Sequence[int] = (), **fields: Any) -> Packet:
        self.channel.send(encode_command(op, **fields), fds)
        return decode(self.channel.receive(20.0))

    def load(self, source: str, *init: object) -> Packet:
        path = self.directory / "submission.py"
        path.write_text(source)
        return self.ask("load", path=str(path), entry="ModelNew", init=list(init), precision="ieee")

    def attach(self, sets: int, *arguments: dict[str, Any]) -> Packet:
        fields = {
            "inputs": {"handle": "", "size": self.inputs.size},
            "outputs": {"handle": "", "size": self.outputs.size},
            "sets": sets,
            "stride": 512,
            "arguments": list(arguments),
        }
        return self.ask("attach", [self.inputs.fd, self.outputs.fd], **fields)

    def set_input(self, index: int, values: Tensor) -> None:
        self.inputs.data[index * 512 : index * 512 + 16].view(torch.float32).copy_(values)

    def run(self, plan: int, token: int = 7) -> Packet:
        self.channel.send(GO.pack(b"R", plan, token))
        return decode(self.channel.receive(20.0))

    def describe(self) -> list[Called]:
        count = self.ask("describe").prepared
        packets = [decode(self.channel.receive(20.0)) for _ in range(count)]
        return [packet.called for packet in packets if packet.called is not None]


X = {"shape": [4], "dtype": "float32", "offset": 0}


@pytest.fixture
def judge(cpu_memory: CpuMemory, tmp_path: Path) -> Iterator[Judge]:
    near, far = Channel.pair()
    device = CpuDevice(1)
    made = Judge(Channel(near), device, tmp_path, device.allocate(1), device.allocate(1))
    far_channel = Channel(far)
    thread = threading.Thread(target=Candidate(far_channel, cpu_memory, "cpu").serve)
    thread.start()
    yield made
    made.channel.close()
    thread.join(20.0)
    assert not thread.is_alive()
    far_channel.close()
    for arena in (made.inputs, made.outputs):
        device.free(arena)


def test_a_submission_goes_all_the_way_and_the_judge_reads_its_outputs(judge: Judge) -> None:
    assert judge.load(SCALE, 10.0).kind is Reply.LOADED
    judge.inputs.data[1024:1040].view(torch.float32).copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    judge.channel.send(encode_command("parameters", slots=[["weight", True, [4], "float32", 1024]]))
    inputs = {"handle": "", "size": judge.inputs.size}
    arguments = [X, {"value": 0.5}]
    bound = judge.ask("bind", [judge.inputs.fd], inputs=inputs, sets=1, stride=512, arguments=arguments)
    assert bound == Packet(Reply.BOUND)

    judge.set_input(0, torch.ones(4))
    called = judge.ask("call", set=0).called
    assert called is not None
    assert (called.call, called.structure, called.tensors[0].region) == (0, "T", Region.FOREIGN)
    assert called.allocated_bytes >= 16

    assert judge.attach(2, X, {"value": 0.5}).prepared == 2
    judge.set_input(0, torch.ones(4))
    judge.set_input(1, torch.full((4,), 2.0))
    assert judge.ask("prepare", mode="eager", order=[1, 0]).prepared == 2
    done = judge.run(Plan.ALL, token=2**64 - 1)
    assert done == Packet(Reply.DONE, token=2**64 - 1)
    calls = judge.describe()
    assert [c.call for c in calls] == [1, 0]
    for described, factor in zip(calls, (2.0, 1.0), strict=True):
        (layout,) = described.tensors
        assert (layout.region, layout.shape, layout.strides) == (Region.OUTPUTS, (4,), (1,))
        read = judge.outputs.data[layout.offset : layout.offset + 16].view(torch.float32)
        assert read.tolist() == [10.0 * factor * w + 0.5 for w in (1.0, 2.0, 3.0, 4.0)]
    assert judge.run(Plan.SINGLE + 0).token == 7
    assert [c.call for c in judge.describe()] == [0]


def prepared(judge: Judge, forward: str) -> None:
    source = f"import torch, sys\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {forward}\n"
    assert judge.load(source).kind is Reply.LOADED
    judge.attach(1, X)
    judge.ask("prepare", mode="eager", order=[0])


@pytest.mark.parametrize(
    ("forward", "failure", "text"),
    [
        ("sys.exit(3)", Failure.EXCEPTION, "SystemExit: 3"),
        ("raise MemoryError('all of it')", Failure.OUT_OF_MEMORY, "MemoryError: all of it"),
        ("return x @ x[:2]", Failure.EXCEPTION, "line 4, in forward: return x @ x[:2]"),
    ],
)
def test_an_exception_in_forward_is_reported_and_the_loop_goes_on(
    judge: Judge, forward: str, failure: Failure, text: str
) -> None:
    prepared(judge, forward)
    for packet in (judge.ask("call", set=0), judge.run(Plan.ALL)):
        assert (packet.kind, packet.failure) == (Reply.FAILED, failure)
        assert text in packet.text
    assert judge.describe() == []


def test_a_missing_parameter_is_reported_by_its_number(judge: Judge) -> None:
    judge.load(SCALE, 1.0)
    slots = [["weight", True, [4], "float32", 0], ["bias", True, [9], "float32", 512]]
    judge.channel.send(encode_command("parameters", slots=slots))
    inputs = {"handle": "", "size": judge.inputs.size}
    assert judge.ask("bind", [judge.inputs.fd], inputs=inputs, sets=0, stride=512, arguments=[]).missing == (1,)


def test_a_submission_that_does_not_load_is_reported(judge: Judge) -> None:
    packet = judge.load("x = 1\n")
    assert (packet.failure, packet.text) == (Failure.CONSTRUCTOR, "the module defines no class ModelNew")


def layouts(judge: Judge, forward: str) -> Called | Packet:
    prepared(judge, forward)
    packet = judge.ask("call", set=0)
    return packet if packet.called is None else packet.called


@pytest.mark.parametrize(
    ("forward", "structure", "shape", "strides", "dtype"),
    [
        ("return x.view(2, 2).t() + 0", "T", (2, 2), (1, 2), DTYPES.index("float32")),
        ("return (x > 0, None)", "(T,N)", (4,), (1,), DTYPES.index("bool")),
        ("return [x.double()]", "[T]", (4,), (1,), DTYPES.index("float64")),
        ("return x.sum()", "T", (), (), DTYPES.index("float32")),
        ("return x.to(torch.uint16)", "T", (4,), (1,), OTHER_DTYPE),
        ("return x[:1].expand(3)", "T", (3,), (0,), DTYPES.index("float32")),
    ],
)
def test_outputs_are_described_as_they_are(
    judge: Judge, forward: str, structure: str, shape: tuple[int, ...], strides: tuple[int, ...], dtype: int
) -> None:
    called = layouts(judge, forward)
    assert isinstance(called, Called)
    assert called.structure == structure
    layout = called.tensors[0]
    assert (layout.shape, layout.strides, layout.dtype) == (shape, strides, dtype)


def test_an_output_in_an_input_is_said_to_be_there(judge: Judge) -> None:
    called = layouts(judge, "return x[1:]")
    assert isinstance(called, Called)
    assert (called.tensors[0].region, called.tensors[0].offset) == (Region.INPUTS, 4)


@pytest.mark.parametrize(
    ("forward", "structure"),
    [
        ("return torch.nn.Parameter(x)", "S"),
        ("return x.to('meta')", "D"),
        ("return 3", "?"),
        ("return object", "?"),
    ],
)
def test_outputs_that_are_no_plain_tensors_here_say_what_they_are(judge: Judge, forward: str, structure: str) -> None:
    called = layouts(judge, forward)
    assert isinstance(called, Called)
    assert called.structure == structure


@pytest.mark.parametrize("forward", ["return x.to_sparse()", "return x.view((1,) * 8 + (4,))"])
def test_layouts_the_wire_cannot_carry_are_a_wrong_structure(judge: Judge, forward: str) -> None:
    packet = layouts(judge, forward)
    assert isinstance(packet, Packet)
    assert packet.failure is Failure.STRUCTURE
    assert "dimensions" in packet.text


class Subclass(Tensor):
    pass


@pytest.mark.parametrize(
    ("make", "structure", "leaves"),
    [
        (lambda t: t, "T", 1),
        (lambda _: None, "N", 0),
        (lambda t: (t, t), "(T,T)", 2),
        (lambda t: (t,), "(T)", 1),
        (lambda _: (), "()", 0),
        (lambda t: [t, [None, (t,)]], "[T,[N,(T)]]", 2),
        (lambda t: {"b": t, "a": None}, "{'b':T,'a':N}", 1),
        (lambda t: OrderedDict(x=t), "{'x':T}", 1),
        (lambda t: Both(t, t), "(T,T)", 2),
        (lambda t: t.as_subclass(Subclass), "S", 0),
        (lambda t: (t, "text", 1.0), "(T,?,?)", 1),
        (lambda t: iter([t]), "?", 0),
        (lambda t: {t}, "?", 0),
    ],
)
def test_nesting_is_written_as_the_judge_writes_it(
    make: Callable[[Tensor], object], structure: str, leaves: int
) -> None:
    found: list[Tensor] = []
    tensor = torch.zeros(2)
    assert describe_structure(make(tensor), found) == structure
    assert len(found) == leaves
    assert all(leaf is tensor for leaf in found)


def test_an_output_that_contains_itself_fails_and_does_not_hang(judge: Judge) -> None:
    packet = layouts(judge, "y = [x]; y.append(y); return y")
    assert isinstance(packet, Packet)
    assert packet.failure is Failure.EXCEPTION
    assert packet.text.startswith("RecursionError")


def test_arguments_come_back_with_their_types() -> None:
    encoded: list[Any] = [1, None, True, [1, {"tuple": [2, {"float": "inf"}]}], {"dict": {"a": {"tuple": []}}}]
    assert decode_arguments(encoded) == [1, None, True, [1, (2, float("inf"))], {"a": ()}]
