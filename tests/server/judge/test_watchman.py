"""The resident kernel sees whether another process had the GPU."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from server.judge.device import Device, open_device
from server.judge.repetition import LOST_LIMIT_S

pytestmark = pytest.mark.gpu

BUSY = """
import torch, time
x = torch.randn(4096, 4096, device="cuda")
{setup}
torch.cuda.synchronize()
print("ready", flush=True)
while True:
    {body}
"""
WATCHES = 20


@pytest.fixture(scope="module")
def device() -> Device:
    """The first GPU."""
    return open_device("cuda:0", 1)


@contextmanager
def neighbour(body: str, setup: str = "") -> Iterator[None]:
    """Another process that repeats `body`."""
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY.format(body=body, setup=setup)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        yield
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def losses(device: Device, work_s: float = 0.0) -> list[float]:
    """Of several watches, with work of our own inside."""
    block = torch.empty(64 << 20, device="cuda")
    block.normal_()  # loads the kernel: that would wait for the watch
    device.synchronize()
    lost = []
    for _ in range(WATCHES):
        watch = device.watch()
        block.normal_()
        device.synchronize()
        time.sleep(work_s)
        lost.append(watch.end())
    return lost


def test_nobody_else_is_nobody(device: Device) -> None:
    assert max(losses(device, 0.1)) < LOST_LIMIT_S


def test_process_without_work_is_nobody(device: Device) -> None:
    with neighbour("time.sleep(1)"):
        assert max(losses(device)) < LOST_LIMIT_S


def test_process_that_computes_is_seen_in_a_long_watch(device: Device) -> None:
    with neighbour("x @ x; torch.cuda.synchronize()"):
        assert min(losses(device, 0.2)) > LOST_LIMIT_S


def test_nothing_is_done_unseen(device: Device, tmp_path: Path) -> None:
    """A neighbour counts the kernels it finished: if two ended in a watch, one ran whole in it: a loss."""
    file = tmp_path / "count"
    file.write_bytes(bytes(8))
    body = "x.add_(1); torch.cuda.synchronize(); n += 1; counter[:] = n.to_bytes(8, 'little')"
    setup = f"import mmap; file = open({str(file)!r}, 'r+b'); counter = mmap.mmap(file.fileno(), 8); n = 0"
    block = torch.empty(16 << 20, device="cuda").normal_()
    device.synchronize()
    seen = []
    with neighbour(body, setup):
        for wait_ms in range(100):
            watch = device.watch()
            block.normal_()
            device.synchronize()
            before = int.from_bytes(file.read_bytes(), "little")
            time.sleep(wait_ms * 1e-3)
            after = int.from_bytes(file.read_bytes(), "little")
            seen.append((after - before, watch.end()))
    assert [pair for pair in seen if pair[0] >= 2 and pair[1] <= LOST_LIMIT_S] == []
    assert any(count >= 2 for count, _ in seen), seen
