"""What crosses the wall between trusted processes and the one that runs a submission. Imported by both sides.

Commands go down as JSON: their sender is trusted. Replies come up in fixed layouts with size caps, one packet each, and
are decoded strictly: whatever does not fit is a `MalformedReply`, which is the submission's fault. Nothing here
unpickles, evaluates or allocates by a number the other side chose. Knows no torch.
"""

import array
import json
import math
import socket
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

MAX_PACKET_BYTES = 192 * 1024
"""Fits an unprivileged socket buffer (212,992 bytes by default on Linux)."""

MAX_TEXT_BYTES = 16 * 1024
"""Longest error text a candidate may send."""

MAX_STRUCTURE_BYTES = 1024
MAX_OUTPUTS = 64
MAX_DIMS = 8
MAX_PARAMETERS = 16_384

GO = struct.Struct("<cIQ")
"""The one command that is not JSON, because it is sent while the clock runs: b"R", plan, token."""


class Plan(IntEnum):
    """Which calls a `GO` runs. Values from `SINGLE` up mean the one call `value - SINGLE`."""

    ALL = 0
    HALF = 1
    NONE = 2
    """No call: what remains is the handoff."""

    SINGLE = 3


class Reply(IntEnum):
    """Kinds of packet a candidate sends."""

    LOADED = 1
    BOUND = 2
    CALLED = 3
    PREPARED = 4
    DONE = 5
    FAILED = 6
    READY = 7
    """Confined, and no line of the submission has run: what ends a process before this is our fault."""

    OPERATORS = 8
    SHARE = 9


class Failure(IntEnum):
    """Why a command failed, as the candidate says. A claim, used for the verdict's name and text only."""

    EXCEPTION = 1
    OUT_OF_MEMORY = 2
    NOT_CAPTURABLE = 3
    CONSTRUCTOR = 4
    COMPILATION = 5
    STRUCTURE = 6


class Region(IntEnum):
    """Where the memory of an output lies, as the candidate says; the judge reads its own memory at that offset."""

    FOREIGN = 0
    OUTPUTS = 1
    INPUTS = 2


DTYPES: tuple[str, ...] = (
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool",
    "float8_e4m3fn", "float8_e5m2", "complex64", "complex128",
)  # fmt: skip
"""Element types by their code on the wire; 255 stands for any other."""

OTHER_DTYPE = 255


class ChannelClosed(Exception):
    """The peer ended or closed its end."""


class DeadlineExceeded(Exception):
    """No packet came in time."""


class MalformedReply(Exception):
    """A packet does not have the layout its kind asks for."""


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """One output tensor as described by a candidate. Sizes and strides count elements."""

    dtype: int
    region: int
    offset: int
    """Bytes from the start of the region."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Called:
    """Outputs of one call."""

    call: int
    allocated_bytes: int
    """Memory the call allocated, a claim; used to choose sizes, which are capped."""

    structure: str
    """Nesting: `T` a tensor, `(T,T)` a tuple, `[T]` a list, `{...}` a dict, `N` None, `?` anything else."""

    tensors: tuple[TensorLayout, ...]


@dataclass(frozen=True, slots=True)
class Packet:
    """A decoded reply. Only the fields of its kind are set."""

    kind: Reply
    missing: tuple[int, ...] = ()
    called: Called | None = None
    prepared: int = 0
    token: int = 0
    operators: tuple[str, ...] = ()
    share: float | None = None
    failure: Failure | None = None
    text: str = ""


_HEAD = struct.Struct("<BB")
_CALLED = struct.Struct("<IQHH")
_TENSOR = struct.Struct("<BBBBQ8q8q")
_U32 = struct.Struct("<I")
_F64 = struct.Struct("<d")
_U64 = struct.Struct("<Q")


def encode_called(called: Called) -> bytes:
    """Packet of kind `CALLED`."""
    structure = called.structure.encode("ascii", "replace")[:MAX_STRUCTURE_BYTES]
    tensors = called.tensors[:MAX_OUTPUTS]
    parts = [
        _HEAD.pack(Reply.CALLED, 0),
        _CALLED.pack(called.call, called.allocated_bytes, len(structure), len(tensors)),
    ]
    parts.append(structure)
    for tensor in tensors:
        pad = (0,) * (MAX_DIMS - len(tensor.shape))
        fields = (*tensor.shape, *pad, *tensor.strides, *pad)
        parts.append(_TENSOR.pack(tensor.dtype, tensor.region, len(tensor.shape), 0, tensor.offset, *fields))
    return b"".join(parts)


def encode_failed(failure: Failure, text: str) -> bytes:
    """Packet of kind `FAILED`, its text cut to the cap."""
    return _HEAD.pack(Reply.FAILED, failure) + text.encode("utf-8", "replace")[:MAX_TEXT_BYTES]


def encode_bound(missing: Sequence[int]) -> bytes:
    """Packet of kind `BOUND`: indices of reference parameters that found no partner."""
    return _HEAD.pack(Reply.BOUND, 0) + struct.pack(f"<{len(missing)}I", *missing)


def encode_ready() -> bytes:
    """Packet of kind `READY`."""
    return _HEAD.pack(Reply.READY, 0)


def encode_operators(names: Iterable[str]) -> bytes:
    """Packet of kind `OPERATORS`: names of the operators one call ran, as many as fit."""
    text = b""
    for name in sorted(set(names)):
        line = name.encode("ascii", "replace") + b"\n"
        if len(text) + len(line) > MAX_TEXT_BYTES:
            break
        text += line
    return _HEAD.pack(Reply.OPERATORS, 0) + text


def encode_share(share: float | None) -> bytes:
    """Packet of kind `SHARE`: own kernels' share of a call, 0 to 1, or that it is not known."""
    return _HEAD.pack(Reply.SHARE, 0) + _F64.pack(math.nan if share is None else share)


def encode_loaded() -> bytes:
    """Packet of kind `LOADED`."""
    return _HEAD.pack(Reply.LOADED, 0)


def encode_prepared(calls: int) -> bytes:
    """Packet of kind `PREPARED`: how many calls are ready."""
    return _HEAD.pack(Reply.PREPARED, 0) + _U32.pack(calls)


def encode_done(token: int) -> bytes:
    """Packet of kind `DONE`."""
    return _HEAD.pack(Reply.DONE, 0) + _U64.pack(token)


def decode(packet: bytes) -> Packet:
    """Reply in `packet`.

    Raises:
        MalformedReply: Any byte is not as its kind demands.
    """
    try:
        return _decode(packet)
    except (struct.error, ValueError) as error:
        raise MalformedReply(f"packet of {len(packet)} bytes: {error}") from error


def _decode(packet: bytes) -> Packet:
    number, code = _HEAD.unpack_from(packet)
    kind, body = Reply(number), packet[_HEAD.size :]
    if kind is Reply.FAILED:
        if len(body) > MAX_TEXT_BYTES:
            raise ValueError("text too long")
        return Packet(kind, failure=Failure(code), text=body.decode("utf-8", "replace"))
    if code != 0:
        raise ValueError("reserved byte set")
    reader = _BODIES.get(kind)
    if reader is not None:
        return reader(body)
    if body:
        raise ValueError("unexpected body")
    return Packet(kind)


def _decode_bound(body: bytes) -> Packet:
    if len(body) % _U32.size or len(body) > _U32.size * MAX_PARAMETERS:
        raise ValueError("bad list of parameters")
    return Packet(Reply.BOUND, missing=struct.unpack(f"<{len(body) // _U32.size}I", body))


def _decode_operators(body: bytes) -> Packet:
    if len(body) > MAX_TEXT_BYTES or not body.isascii() or (body and not body.endswith(b"\n")):
        raise ValueError("bad list of operators")
    return Packet(Reply.OPERATORS, operators=tuple(body.decode("ascii").split("\n")[:-1]))


def _decode_share(body: bytes) -> Packet:
    (share,) = _F64.unpack(body)
    if not (math.isnan(share) or 0.0 <= share <= 1.0):
        raise ValueError("a share is between 0 and 1")
    return Packet(Reply.SHARE, share=None if math.isnan(share) else share)


def _decode_called(body: bytes) -> Called:
    call, allocated, structure_bytes, count = _CALLED.unpack_from(body)
    if structure_bytes > MAX_STRUCTURE_BYTES or count > MAX_OUTPUTS:
        raise ValueError("structure or outputs beyond the cap")
    start = _CALLED.size + structure_bytes
    if len(body) != start + count * _TENSOR.size:
        raise ValueError("length does not fit the number of outputs")
    structure = body[_CALLED.size : start].decode("ascii")
    tensors = []
    for index in range(count):
        dtype, region, dims, unused, offset, *numbers = _TENSOR.unpack_from(body, start + index * _TENSOR.size)
        if dims > MAX_DIMS or (dtype >= len(DTYPES) and dtype != OTHER_DTYPE):
            raise ValueError("unknown element type or too many dimensions")
        shape, strides = tuple(numbers[:dims]), tuple(numbers[MAX_DIMS : MAX_DIMS + dims])
        if unused or any(numbers[dims:MAX_DIMS]) or any(numbers[MAX_DIMS + dims :]):
            raise ValueError("unused bytes are not zero")
        if any(size < 0 for size in shape) or any(stride < 0 for stride in strides):
            raise ValueError("negative size or stride")
        tensors.append(TensorLayout(dtype, Region(region), offset, shape, strides))
    return Called(call, allocated, structure, tuple(tensors))


class Channel:
    """One end of a sequenced-packet socket, with a deadline on every wait."""

    def __init__(self, sock: socket.socket) -> None:
        """Take over `sock`, of type `SOCK_SEQPACKET`."""
        self.sock = sock

    @staticmethod
    def pair() -> tuple[socket.socket, socket.socket]:
        """Two connected ends."""
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def send(self, packet: bytes, fds: Sequence[int] = (), timeout_s: float | None = None) -> None:
        """Send one packet, with file descriptors beside it.

        Raises:
            ChannelClosed: The other end is gone.
            DeadlineExceeded: The other end does not read.
        """
        try:
            self.sock.settimeout(timeout_s)
            if fds:
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
                self.sock.sendmsg([packet], [rights])
            else:
                self.sock.send(packet)
        except TimeoutError as error:
            raise DeadlineExceeded("peer does not read") from error
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Next packet; file descriptors that came with it are closed by the kernel.

        Raises:
            ChannelClosed: The other end is gone.
            DeadlineExceeded: Nothing came in `timeout_s` seconds.
            MalformedReply: The packet is longer than any may be.
        """
        try:
            self.sock.settimeout(timeout_s)
            packet, _, flags, _ = self.sock.recvmsg(MAX_PACKET_BYTES)
        except TimeoutError as error:
            raise DeadlineExceeded(f"no packet in {timeout_s} s") from error
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        if flags & socket.MSG_TRUNC:
            raise MalformedReply(f"packet of more than {MAX_PACKET_BYTES} bytes")
        if not packet:
            raise ChannelClosed("end of file")
        return packet

    def receive_with_fds(self, max_fds: int, timeout_s: float | None = None) -> tuple[bytes, list[int]]:
        """Next packet of a trusted peer and the descriptors beside it, which the caller owns.

        Raises:
            ChannelClosed: The other end is gone.
            DeadlineExceeded: Nothing came in `timeout_s` seconds.
        """
        try:
            self.sock.settimeout(timeout_s)
            packet, fds, _, _ = socket.recv_fds(self.sock, MAX_PACKET_BYTES, max_fds)
        except TimeoutError as error:
            raise DeadlineExceeded(f"no packet in {timeout_s} s") from error
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        if not packet:
            raise ChannelClosed("end of file")
        return packet, fds

    @property
    def is_open(self) -> bool:
        """Whether this end has not been closed."""
        return self.sock.fileno() >= 0

    def close(self) -> None:
        """Close this end. Safe to call twice."""
        self.sock.close()


def encode_command(op: str, **fields: object) -> bytes:
    """JSON command for a candidate, a zygote or a judge.

    Raises:
        ValueError: It does not fit one packet, or a field is not JSON.
    """
    packet = json.dumps({"op": op, **fields}, separators=(",", ":"), allow_nan=False).encode()
    if len(packet) > MAX_PACKET_BYTES:
        raise ValueError(f"command {op!r} of {len(packet)} bytes does not fit one packet")
    return packet


class Deadline:
    """A point in time, by the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        """Start counting now."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds left, at least a millisecond so that a wait may still pick up what is there."""
        return max(self._end - time.monotonic(), 0.001)

    @property
    def is_over(self) -> bool:
        """Whether it has passed."""
        return time.monotonic() >= self._end


_BODIES: dict[Reply, Callable[[bytes], Packet]] = {
    Reply.BOUND: _decode_bound,
    Reply.CALLED: lambda body: Packet(Reply.CALLED, called=_decode_called(body)),
    Reply.OPERATORS: _decode_operators,
    Reply.SHARE: _decode_share,
    Reply.PREPARED: lambda body: Packet(Reply.PREPARED, prepared=_U32.unpack(body)[0]),
    Reply.DONE: lambda body: Packet(Reply.DONE, token=_U64.unpack(body)[0]),
}
