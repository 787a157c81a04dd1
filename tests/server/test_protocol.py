"""What crosses the wall: a packet decodes strictly or not at all."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server import protocol
from server.protocol import (
    MAX_DIMS,
    MAX_OUTPUTS,
    MAX_PACKET_BYTES,
    MAX_PARAMETERS,
    MAX_STRUCTURE_BYTES,
    MAX_TEXT_BYTES,
    OTHER_DTYPE,
    Called,
    Failure,
    MalformedReply,
    Packet,
    Region,
    Reply,
    TensorLayout,
    decode,
    encode_bound,
    encode_called,
    encode_command,
    encode_done,
    encode_failed,
    encode_loaded,
    encode_operators,
    encode_prepared,
    encode_ready,
    encode_share,
)

SCALAR = TensorLayout(dtype=0, region=Region.OUTPUTS, offset=64, shape=(), strides=())
MATRIX = TensorLayout(dtype=3, region=Region.FOREIGN, offset=2**64 - 1, shape=(4, 0, 2**63 - 1), strides=(8, 2, 1))
DEEP = TensorLayout(OTHER_DTYPE, Region.INPUTS, 0, tuple(range(1, MAX_DIMS + 1)), (1,) * MAX_DIMS)
CALLED = Called(call=7, allocated_bytes=2**40, structure="(T,[T,N],{'a':T})", tensors=(SCALAR, MATRIX, DEEP))


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        (encode_ready(), Packet(Reply.READY)),
        (encode_loaded(), Packet(Reply.LOADED)),
        (encode_bound([]), Packet(Reply.BOUND)),
        (encode_bound([0, 5, 2**32 - 1]), Packet(Reply.BOUND, missing=(0, 5, 2**32 - 1))),
        (encode_called(CALLED), Packet(Reply.CALLED, called=CALLED)),
        (encode_called(Called(0, 0, "N", ())), Packet(Reply.CALLED, called=Called(0, 0, "N", ()))),
        (encode_prepared(4096), Packet(Reply.PREPARED, prepared=4096)),
        (encode_share(0.25), Packet(Reply.SHARE, share=0.25)),
        (encode_share(None), Packet(Reply.SHARE)),
        (encode_done(2**64 - 1), Packet(Reply.DONE, token=2**64 - 1)),
        *(
            (encode_failed(kind, "line 3: naïve"), Packet(Reply.FAILED, failure=kind, text="line 3: naïve"))
            for kind in Failure
        ),
    ],
)
def test_every_reply_decodes_to_what_was_sent(packet: bytes, expected: Packet) -> None:
    assert decode(packet) == expected


def test_every_kind_of_reply_has_an_encoder() -> None:
    packets = (
        encode_ready(),
        encode_loaded(),
        encode_bound([1]),
        encode_called(CALLED),
        encode_prepared(1),
        encode_done(1),
        encode_failed(Failure.EXCEPTION, ""),
        encode_operators(["aten.add.Tensor"]),
        encode_share(0.5),
    )
    assert {decode(packet).kind for packet in packets} == set(Reply)


@pytest.mark.parametrize("share", [-0.01, 1.01, float("inf"), float("-inf"), 1e300])
def test_a_share_beyond_its_range_is_malformed(share: float) -> None:
    with pytest.raises(MalformedReply):
        decode(encode_share(share))


def test_texts_and_lists_are_cut_to_their_caps_by_the_encoder() -> None:
    long_text = decode(encode_failed(Failure.EXCEPTION, "é" * MAX_TEXT_BYTES)).text
    many = decode(encode_called(Called(0, 0, "T" * 5000, (SCALAR,) * 100))).called
    assert len(long_text.encode()) <= MAX_TEXT_BYTES + 2
    assert many is not None
    assert len(many.structure) == MAX_STRUCTURE_BYTES
    assert len(many.tensors) == MAX_OUTPUTS


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"\x01",
        b"\x00\x00",  # no such kind
        bytes([max(Reply) + 1, 0]),
        encode_loaded() + b"\x00",
        encode_ready() + b"\x00",
        b"\x01\x01",  # reserved byte
        encode_bound([1])[:-1],
        encode_bound([1] * (MAX_PARAMETERS + 1)),
        encode_prepared(1) + b"\x00",
        encode_prepared(1)[:-1],
        encode_done(1)[:-1],
        encode_done(1) + b"\x00",
        b"\x06\x00text",  # no such failure
        b"\x06\x63text",
        encode_failed(Failure.EXCEPTION, "x" * MAX_TEXT_BYTES) + b"x",
        encode_called(CALLED)[:-1],
        encode_called(CALLED) + b"\x00",
    ],
)
def test_a_packet_of_another_layout_is_malformed(packet: bytes) -> None:
    with pytest.raises(MalformedReply):
        decode(packet)


def called_packet(
    *, structure: bytes = b"T", count: int | None = None, claimed: int | None = None, tensor: bytes = b""
) -> bytes:
    tensors = tensor or encode_called(Called(0, 0, "", (SCALAR,)))[18:]
    number = 1 if count is None else count
    head = struct.pack("<BBIQHH", Reply.CALLED, 0, 0, 0, len(structure) if claimed is None else claimed, number)
    return head + structure + tensors * number


def tensor_bytes(
    dtype: int = 0, region: int = 1, dims: int = 1, unused: int = 0, size: int = 4, tail: int = 0
) -> bytes:
    sizes = (size, *(0,) * 6, tail)
    strides = (1, *(0,) * 7)
    return struct.pack("<BBBBQ8q8q", dtype, region, dims, unused, 0, *sizes, *strides)


@pytest.mark.parametrize(
    "packet",
    [
        called_packet(structure=b"T" * (MAX_STRUCTURE_BYTES + 1)),
        called_packet(structure=b"\xff"),
        called_packet(count=MAX_OUTPUTS + 1),
        called_packet(claimed=2),
        called_packet(claimed=0xFFFF),
        called_packet(tensor=tensor_bytes(dims=MAX_DIMS + 1)),
        called_packet(tensor=tensor_bytes(dtype=len(protocol.DTYPES))),
        called_packet(tensor=tensor_bytes(region=3)),
        called_packet(tensor=tensor_bytes(size=-1)),
        called_packet(tensor=tensor_bytes(unused=1)),
        called_packet(tensor=tensor_bytes(tail=1)),
    ],
)
def test_a_hostile_description_of_outputs_is_malformed(packet: bytes) -> None:
    with pytest.raises(MalformedReply):
        decode(packet)


def test_a_hand_made_description_is_accepted_so_that_the_hostile_ones_fail_for_their_own_reason() -> None:
    called = decode(called_packet(tensor=tensor_bytes())).called
    assert called == Called(0, 0, "T", (TensorLayout(0, Region.OUTPUTS, 0, (4,), (1,)),))


def encode_again(packet: Packet) -> bytes:
    """The one packet that means the same; not for `FAILED`, whose text may lose bytes that are no UTF-8."""
    if packet.called is not None:
        return encode_called(packet.called)
    return {
        Reply.READY: encode_ready(),
        Reply.LOADED: encode_loaded(),
        Reply.BOUND: encode_bound(packet.missing),
        Reply.PREPARED: encode_prepared(packet.prepared),
        Reply.DONE: encode_done(packet.token),
        Reply.SHARE: encode_share(packet.share),
        Reply.OPERATORS: encode_operators(packet.operators),
    }[packet.kind]


def in_order(packet: Packet) -> Packet:
    """With its operators as the encoder sends them: each once, sorted."""
    return replace(packet, operators=tuple(sorted(set(packet.operators))))


@st.composite
def nearly_right(draw: st.DrawFn) -> bytes:
    """A valid packet with some bytes replaced, dropped or added."""
    packet = bytearray(
        draw(
            st.sampled_from(
                [
                    encode_loaded(),
                    encode_bound([1, 2, 3]),
                    encode_called(CALLED),
                    encode_called(Called(0, 0, "T", (SCALAR,))),
                    encode_prepared(3),
                    encode_done(9),
                    encode_failed(Failure.EXCEPTION, "boom"),
                ]
            )
        )
    )
    for place, value in draw(st.lists(st.tuples(st.integers(0, len(packet) - 1), st.integers(0, 255)), max_size=4)):
        packet[place] = value
    return bytes(packet[: draw(st.integers(0, len(packet)))]) if draw(st.booleans()) else bytes(packet)


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.binary(max_size=400), nearly_right(), st.binary(max_size=200).map(lambda tail: b"\x03\x00" + tail)))
def test_any_bytes_decode_or_are_malformed_and_nothing_else(packet: bytes) -> None:
    try:
        decoded = decode(packet)
    except MalformedReply:
        return
    if decoded.kind is Reply.FAILED:
        assert len(decoded.text) <= MAX_TEXT_BYTES
    else:
        assert decode(encode_again(decoded)) == in_order(decoded)
        if decoded.kind not in {Reply.OPERATORS, Reply.SHARE}:  # the order of names, and the bits of a NaN, are free
            assert encode_again(decoded) == packet


def test_the_largest_replies_fit_one_packet() -> None:
    called = Called(0, 0, "T" * MAX_STRUCTURE_BYTES, (DEEP,) * MAX_OUTPUTS)
    for packet in (
        encode_called(called),
        encode_bound([0] * MAX_PARAMETERS),
        encode_failed(Failure.EXCEPTION, "x" * 10**6),
    ):
        assert len(packet) <= MAX_PACKET_BYTES


def test_commands_are_json_and_bounded() -> None:
    assert encode_command("call", set=3) == b'{"op":"call","set":3}'
    with pytest.raises(ValueError, match="does not fit"):
        encode_command("load", text="x" * MAX_PACKET_BYTES)
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_command("load", value=float("nan"))


def test_operators_arrive_once_each_and_in_order() -> None:
    packet = decode(encode_operators(["aten.view.default", "aten.add.Tensor", "aten.view.default"]))
    assert packet.operators == ("aten.add.Tensor", "aten.view.default")
    assert decode(encode_operators([])).operators == ()


def test_names_of_operators_beyond_the_cap_are_left_out() -> None:
    packet = encode_operators([f"aten.{'x' * 100}{number}.default" for number in range(1000)])
    assert len(packet) <= 2 + MAX_TEXT_BYTES
    assert len(decode(packet).operators) > 100


@pytest.mark.parametrize("body", [b"aten.add.Tensor", b"aten.\xff\n", b"a" * MAX_TEXT_BYTES + b"\n"])
def test_list_of_operators_in_another_layout_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedReply):
        decode(struct.pack("<BB", Reply.OPERATORS, 0) + body)
