"""The loop of a candidate process: obeys the judge's commands with the submission's module. Untrusted side.

Everything it sends is a claim. It holds no seed, no expected output and no verdict.
"""

import gc
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from ..protocol import (
    DTYPES,
    GO,
    MAX_DIMS,
    OTHER_DTYPE,
    Called,
    Channel,
    ChannelClosed,
    Failure,
    Region,
    TensorLayout,
    encode_bound,
    encode_called,
    encode_done,
    encode_failed,
    encode_loaded,
    encode_operators,
    encode_prepared,
    encode_share,
)
from .loading import CandidateFailure, ParameterSlot, bind_parameters, dtype_of, failure_of, load_model
from .memory import CudaMemory, Memory
from .record import OperatorRecord, profiled
from .replay import EagerReplay, GraphReplay, Replay
from .share import Launches, has_other_kernels, share_by_absence, share_by_clock

PER_THREAD_STREAM = 2
"""cudaStreamPerThread.

A launch without a stream, compiled with per-thread default streams, lands there and is captured.
"""


class Candidate:
    """State of one submission between commands."""

    def __init__(self, channel: Channel, memory: Memory, device: str) -> None:
        """Obey commands from `channel` on `device`, `cpu` or `cuda`."""
        self._channel, self._memory, self._device = channel, memory, device
        self._path = ""
        self._model: torch.nn.Module | None = None
        self._slots: list[ParameterSlot] = []
        self._arguments: list[list[object]] = []
        self._replay: Replay | None = None
        self._stream: torch.cuda.Stream | None = None

    def serve(self) -> None:
        """Until the judge closes the channel."""
        handlers: dict[str, Callable[[Mapping[str, Any], Sequence[int]], None]] = {
            "load": self._load,
            "parameters": self._parameters,
            "bind": self._bind,
            "attach": self._attach,
            "call": self._call,
            "operators": self._operators,
            "share": self._share,
            "prepare": self._prepare,
            "describe": self._describe,
        }
        while True:
            try:
                packet, fds = self._channel.receive_with_fds(2)
            except ChannelClosed:
                return
            try:
                if packet[:1] == b"R":
                    self._run(packet)
                else:
                    command = json.loads(packet)
                    handlers[command["op"]](command, fds)
            except CandidateFailure as failure:
                self._channel.send(encode_failed(failure.failure, failure.text))
            except BaseException as error:  # SystemExit in forward is the submission's fault too
                described = failure_of(error, self._path)
                self._channel.send(encode_failed(described.failure, described.text))

    def _load(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        self._path = command["path"]
        allow_tf32 = command["precision"] == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = allow_tf32
        torch.backends.cudnn.allow_tf32 = allow_tf32
        if self._device == "cuda":
            self._stream = torch.cuda.ExternalStream(PER_THREAD_STREAM)  # type: ignore[no-untyped-call]
        with self._on_stream():
            self._model = load_model(self._path, command["entry"], decode_arguments(command["init"]), self._device)
        self._synchronize()
        self._channel.send(encode_loaded())

    def _parameters(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        """More of the reference's parameters; there is no reply, the next command follows."""
        for name, is_parameter, shape, dtype, offset in command["slots"]:
            self._slots.append(ParameterSlot(name, is_parameter, tuple(shape), dtype_of(dtype), offset))

    def _bind(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        self._attach_inputs(command, fds)
        values = [self._memory.view(Region.INPUTS, s.offset, s.shape, s.dtype) for s in self._slots]
        assert self._model is not None
        with self._on_stream():
            missing = bind_parameters(self._model, self._slots, values)
        self._synchronize()
        self._channel.send(encode_bound(missing))

    def _attach(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        self._attach_inputs(command, fds[:1])
        outputs = command["outputs"]
        self._memory.open(Region.OUTPUTS, outputs["handle"], fds[1] if len(fds) > 1 else -1, outputs["size"])
        self._channel.send(encode_prepared(len(self._arguments)))

    def _attach_inputs(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        inputs = command["inputs"]
        self._memory.open(Region.INPUTS, inputs["handle"], fds[0] if fds else -1, inputs["size"])
        self._arguments = []
        for index in range(command["sets"]):
            arguments = []
            for spec in command["arguments"]:
                if "value" in spec:
                    arguments.append(decode_arguments([spec["value"]])[0])
                else:
                    offset = spec["offset"] + index * command["stride"]
                    view = self._memory.view(Region.INPUTS, offset, tuple(spec["shape"]), dtype_of(spec["dtype"]))
                    arguments.append(view)
            self._arguments.append(arguments)

    def _forward(self, index: int) -> object:
        assert self._model is not None
        return self._model(*self._arguments[index])

    def _call(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        """One call, not timed by us, outputs in ordinary memory: compiles, tunes and allocates workspaces."""
        before = self._memory.allocated_bytes()
        with self._on_stream(), torch.no_grad():
            output = self._forward(command["set"])
        self._synchronize()
        allocated = self._memory.allocated_bytes() - before
        self._channel.send(encode_called(self._layout(command["set"], output, allocated)))

    def _operators(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        """One call, not timed: which operators of PyTorch and own kernels it runs, called as usual and captured."""
        record, launches = OperatorRecord(), Launches()

        def call() -> None:
            with self._on_stream(), torch.no_grad(), launches.noted():
                record.around(self._forward)(command["set"])
            self._synchronize()

        names = profiled(call) | record.names | launches.names
        if isinstance(self._replay, GraphReplay):
            assert isinstance(self._memory, CudaMemory)
            # Inside of the capture, so that the capture's own operators are none of the module's.
            captured = OperatorRecord()
            with torch.no_grad():
                self._replay.once(command["set"], captured.around(self._forward), self._memory)
            names = names | captured.names
        self._channel.send(encode_operators(names))

    def _share(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        """How much of a call is the work of the submission's own kernels. Comes last: it may confuse the module."""
        index = command["set"]
        share: float | None = None
        launches_are_known = not has_other_kernels(str(Path(self._path).parent))
        if self._device == "cpu":
            with torch.no_grad():
                share = share_by_clock(lambda: self._forward(index), only_launches=launches_are_known)
        elif isinstance(self._replay, GraphReplay) and launches_are_known:
            share = share_by_absence(lambda: self._captured(index))
        self._channel.send(encode_share(share))

    def _captured(self, index: int) -> Callable[[], None] | None:
        """A call captured once more: launches it and waits for it."""
        assert isinstance(self._replay, GraphReplay)
        assert isinstance(self._memory, CudaMemory)
        with torch.no_grad():
            captured = self._replay.once(index, self._forward, self._memory)
        if captured is None:
            return None
        graph, _ = captured
        graph.instantiate()

        def launch() -> None:
            with self._on_stream():
                graph.replay()
            torch.cuda.synchronize()

        return launch

    def _prepare(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        order = command["order"]
        self._replay = None
        gc.collect()  # a capture that failed may still hold outputs
        self._memory.reset()
        if command["mode"] == "graph":
            assert isinstance(self._memory, CudaMemory)
            assert self._stream is not None
            try:
                with torch.no_grad():
                    self._replay = GraphReplay(self._forward, order, self._memory, self._stream)
            except CandidateFailure:
                raise
            except BaseException as error:
                torch.cuda.synchronize()
                raise CandidateFailure(Failure.NOT_CAPTURABLE, failure_of(error, self._path).text) from None
        else:
            self._replay = EagerReplay(self._forward, order, self._memory, self._synchronize)
        self._channel.send(encode_prepared(self._replay.calls))

    def _run(self, packet: bytes) -> None:
        _, plan, token = GO.unpack(packet)
        assert self._replay is not None
        with self._on_stream(), torch.no_grad():
            self._replay.run(plan)
        self._channel.send(encode_done(token))

    def _describe(self, command: Mapping[str, Any], fds: Sequence[int]) -> None:
        assert self._replay is not None
        outputs = self._replay.outputs()
        self._memory.tidy(len(outputs))
        self._channel.send(encode_prepared(len(outputs)))
        for index, output in outputs:
            self._channel.send(encode_called(self._layout(index, output, 0)))

    def _on_stream(self) -> Any:
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def _synchronize(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()

    def _layout(self, call: int, output: object, allocated: int) -> Called:
        leaves: list[torch.Tensor] = []
        structure = describe_structure(output, leaves)
        tensors = []
        for leaf in leaves:
            name = str(leaf.dtype).removeprefix("torch.")
            dtype = DTYPES.index(name) if name in DTYPES else OTHER_DTYPE
            if leaf.dim() > MAX_DIMS or leaf.layout is not torch.strided:
                raise CandidateFailure(
                    Failure.STRUCTURE, f"output has layout {leaf.layout} and {leaf.dim()} dimensions"
                )
            region, offset = Region.FOREIGN, 0
            if leaf.device.type == self._device:
                region, offset = self._memory.locate(leaf.data_ptr())
            if leaf.device.type != self._device:
                structure = structure.replace("T", "D")  # right type, wrong device
            tensors.append(TensorLayout(dtype, region, offset, tuple(leaf.shape), tuple(leaf.stride())))
        return Called(call, max(allocated, 0), structure, tuple(tensors))


def describe_structure(output: object, leaves: list[torch.Tensor]) -> str:
    """Nesting of `output` as in `Called.structure`; its plain tensors are appended to `leaves`."""
    if type(output) is torch.Tensor:
        leaves.append(output)
        return "T"
    if output is None:
        return "N"
    if isinstance(output, torch.Tensor):
        return "S"
    if isinstance(output, tuple | list):
        inner = ",".join(describe_structure(item, leaves) for item in output)
        return f"({inner})" if isinstance(output, tuple) else f"[{inner}]"
    if isinstance(output, dict):
        inner = ",".join(f"{key!r}:{describe_structure(value, leaves)}" for key, value in output.items())
        return f"{{{inner}}}"
    return "?"


def decode_arguments(encoded: Sequence[Any]) -> list[object]:
    """Constructor or call arguments from JSON.

    Lists as they are, `{"tuple": [...]}` a tuple, `{"dict": ...}` a dict.
    """
    return [_decode_argument(item) for item in encoded]


def _decode_argument(item: Any) -> object:
    if isinstance(item, list):
        return [_decode_argument(inner) for inner in item]
    if isinstance(item, dict):
        if "tuple" in item:
            return tuple(_decode_argument(inner) for inner in item["tuple"])
        if "float" in item:
            return float(item["float"])
        return {key: _decode_argument(value) for key, value in item["dict"].items()}
    return item
