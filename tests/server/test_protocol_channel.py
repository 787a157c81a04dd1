"""The channel: packets keep their borders, and every wait ends."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.protocol import (
    MAX_PACKET_BYTES,
    Channel,
    ChannelClosed,
    Deadline,
    DeadlineExceeded,
    MalformedReply,
    Reply,
    decode,
    encode_done,
    encode_loaded,
)


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    left, right = (Channel(sock) for sock in Channel.pair())
    yield left, right
    left.close()
    right.close()


def open_fds() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_packets_keep_their_borders(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    left.send(encode_done(1))
    left.send(encode_done(2))
    assert [decode(right.receive(1.0)).token for _ in range(2)] == [1, 2]


def test_the_largest_packet_arrives_whole(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    left.send(b"x" * MAX_PACKET_BYTES, timeout_s=1.0)
    assert len(right.receive(1.0)) == MAX_PACKET_BYTES


def test_a_packet_beyond_the_cap_is_malformed_and_the_next_one_is_read(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    left.send(b"x" * (MAX_PACKET_BYTES + 1), timeout_s=1.0)
    with pytest.raises(MalformedReply, match="more than"):
        right.receive(1.0)
    left.send(encode_loaded())
    assert decode(right.receive(1.0)).kind is Reply.LOADED


def test_waiting_for_a_silent_peer_ends_at_the_deadline(ends: tuple[Channel, Channel]) -> None:
    start = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        ends[0].receive(0.05)
    with pytest.raises(DeadlineExceeded):
        ends[0].receive_with_fds(1, 0.05)
    assert 0.1 <= time.monotonic() - start < 5.0


def test_sending_to_a_peer_that_does_not_read_ends_at_the_deadline(ends: tuple[Channel, Channel]) -> None:
    def send_until_full() -> None:
        for _ in range(1000):
            ends[0].send(b"x" * MAX_PACKET_BYTES, timeout_s=0.05)

    start = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        send_until_full()
    assert time.monotonic() - start < 5.0


def test_a_closed_peer_is_told_apart_from_a_silent_one(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    right.close()
    with pytest.raises(ChannelClosed):
        left.receive(1.0)
    with pytest.raises(ChannelClosed):
        left.receive_with_fds(1, 1.0)
    with pytest.raises(ChannelClosed):
        left.send(b"x", timeout_s=1.0)


def test_what_was_sent_before_the_end_is_still_read(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    right.send(encode_done(5))
    right.close()
    assert decode(left.receive(1.0)).token == 5
    with pytest.raises(ChannelClosed):
        left.receive(1.0)


def test_using_an_end_after_its_own_close_reads_as_closed(ends: tuple[Channel, Channel]) -> None:
    ends[0].close()
    ends[0].close()
    with pytest.raises(ChannelClosed):
        ends[0].receive(1.0)
    with pytest.raises(ChannelClosed):
        ends[0].send(b"x")


def test_an_empty_packet_counts_as_the_end(ends: tuple[Channel, Channel]) -> None:
    """A sequenced-packet socket cannot tell them apart."""
    ends[0].sock.send(b"")
    with pytest.raises(ChannelClosed):
        ends[1].receive(1.0)


def test_stray_descriptors_of_a_candidate_never_enter_the_receiver(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    before = open_fds()
    left.send(encode_done(1), [left.sock.fileno()] * 100)
    assert decode(right.receive(1.0)).token == 1
    assert open_fds() == before


def test_descriptors_of_a_trusted_peer_arrive_and_are_capped(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    read_end, write_end = os.pipe()
    before = open_fds()
    left.send(b"a", [write_end, write_end])
    packet, fds = right.receive_with_fds(2, 1.0)
    assert (packet, len(fds)) == (b"a", 2)
    os.write(fds[0], b"here")
    assert os.read(read_end, 4) == b"here"
    for fd in fds:
        os.close(fd)
    left.send(b"b", [write_end] * 9)
    packet, fds = right.receive_with_fds(2, 1.0)
    assert (packet, len(fds)) == (b"b", 2)
    for fd in (*fds, read_end, write_end):
        os.close(fd)
    assert open_fds() == before - 2


def test_both_ends_are_sequenced_packet_sockets_not_inherited(ends: tuple[Channel, Channel]) -> None:
    for end in ends:
        assert end.sock.type == socket.SOCK_SEQPACKET
        assert not os.get_inheritable(end.sock.fileno())


def test_a_deadline_counts_down_and_leaves_time_to_pick_up_what_is_there() -> None:
    deadline = Deadline(0.02)
    assert 0.0 < deadline.left_s <= 0.02
    states = [deadline.is_over]
    time.sleep(0.03)
    states.append(deadline.is_over)
    assert states == [False, True]
    assert deadline.left_s == pytest.approx(0.001)
