"""Memory a device exports: whole pieces, and sealed against the one attack a mapping allows."""

import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from server.judge.device import PIECE_BYTES, CpuDevice, open_device, round_up

CHILD = """
import mmap, os, sys
fd = int(sys.argv[1])
size = os.fstat(fd).st_size
refused = 0
for wanted in (0, size // 2, size * 2):
    try:
        os.ftruncate(fd, wanted)
    except PermissionError:
        refused += 1
try:
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_TRUNC)
except PermissionError:
    refused += 1
mapping = mmap.mmap(fd, size)
mapping[size - 1] = 42
print(refused)
"""


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def device() -> CpuDevice:
    return CpuDevice(threads=1)


@pytest.mark.parametrize(
    ("size", "rounded"),
    [(0, PIECE_BYTES), (1, PIECE_BYTES), (PIECE_BYTES, PIECE_BYTES), (PIECE_BYTES + 1, 2 * PIECE_BYTES)],
)
def test_sizes_are_whole_pieces_and_never_none(size: int, rounded: int) -> None:
    assert round_up(size) == rounded


def test_a_block_is_zero_and_holds_what_was_asked_for(device: CpuDevice) -> None:
    block = device.allocate(PIECE_BYTES + 5)
    assert (block.size, block.data.numel(), block.data.dtype) == (2 * PIECE_BYTES, 2 * PIECE_BYTES, torch.uint8)
    assert int(block.data.max()) == 0
    assert block.data.data_ptr() % mmap.PAGESIZE == 0
    assert not os.get_inheritable(block.fd)
    device.free(block)


def test_whoever_maps_a_block_sees_its_bytes_and_writes_to_them(device: CpuDevice) -> None:
    block = device.allocate(1)
    block.data[:4] = torch.tensor([1, 2, 3, 4], dtype=torch.uint8)
    with mmap.mmap(block.fd, block.size) as other:
        assert other[:4] == b"\x01\x02\x03\x04"
        other[7] = 9
    assert int(block.data[7]) == 9
    device.free(block)


def test_a_candidate_can_neither_truncate_nor_grow_the_judges_memory(device: CpuDevice) -> None:
    """Touching a page that was cut off would kill the judge by SIGBUS."""
    block = device.allocate(1)
    child = [sys.executable, "-I", "-c", CHILD, str(block.fd)]
    done = subprocess.run(child, pass_fds=[block.fd], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "4"
    assert os.fstat(block.fd).st_size == block.size
    assert int(block.data[-1]) == 42
    device.free(block)


def test_further_seals_cannot_be_added(device: CpuDevice) -> None:
    """A write seal would fail while a mapping is writable; a new one must not be possible at all."""
    import fcntl

    block = device.allocate(1)
    with pytest.raises(PermissionError):
        fcntl.fcntl(
            block.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_FUTURE_WRITE if hasattr(fcntl, "F_SEAL_FUTURE_WRITE") else 16
        )
    device.free(block)


def test_freeing_closes_the_file(device: CpuDevice) -> None:
    block = device.allocate(1)
    device.free(block)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(block.fd)


def test_the_host_describes_itself(device: CpuDevice) -> None:
    assert device.name
    assert device.kind == device.torch_device.type == "cpu"
    assert 0 < device.free_bytes() < 1 << 45
    assert 32 << 10 <= device.last_level_cache_bytes() <= 4 << 30
    assert device.is_idle()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_reference_gets_as_many_threads_as_a_candidate(threads: int) -> None:
    before = torch.get_num_threads()
    try:
        assert open_device("cpu", threads).kind == "cpu"
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def allocate(device: CpuDevice) -> Callable[[int], None]:
    return lambda size: device.free(device.allocate(size))


def test_blocks_come_and_go_without_leaking_descriptors(allocate: Callable[[int], None]) -> None:
    before = open_descriptors()
    for _ in range(20):
        allocate(1)
    assert open_descriptors() == before
