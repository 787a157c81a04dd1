"""The resident kernel sees whether another process had the GPU."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from server.judge.device import Device, open_device
from server.judge.repetition import LOST_LIMIT_S

pytestmark = pytest.mark.gpu

BUSY = """
import torch, time
x = torch.randn(4096, 4096, device="cuda")
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
def neighbour(body: str) -> Iterator[None]:
    """Another process that repeats `body`."""
    process = subprocess.Popen([sys.executable, "-c", BUSY.format(body=body)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        yield
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def losses(device: Device) -> list[float]:
    """Of several watches, with work of our own inside."""
    block = torch.empty(64 << 20, device="cuda")
    lost = []
    for _ in range(WATCHES):
        watch = device.watch()
        block.normal_()
        device.synchronize()
        lost.append(watch.end())
    return lost


def test_nobody_else_is_nobody(device: Device) -> None:
    assert max(losses(device)) < LOST_LIMIT_S


def test_process_without_work_is_nobody(device: Device) -> None:
    with neighbour("time.sleep(1)"):
        assert max(losses(device)) < LOST_LIMIT_S


def test_process_that_computes_is_seen_every_time(device: Device) -> None:
    with neighbour("x @ x; torch.cuda.synchronize()"):
        assert min(losses(device)) > LOST_LIMIT_S


def test_short_kernels_now_and_then_are_seen(device: Device) -> None:
    with neighbour("x.add_(1); torch.cuda.synchronize(); time.sleep(0.001)"):
        assert min(losses(device)) > LOST_LIMIT_S
