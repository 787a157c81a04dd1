"""The whole of it: a server process with the real evaluator on the CPU, clients over its WebSocket, and its end."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernel_env import ClientError, KernelEnv, KernelObservation, Verdict

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "examples" / "kernels"
START_TIMEOUT_S = 120.0
END_LIMIT_S = 5.0
FOREVER = """
import torch
import torch.nn as nn
from kernel_env import native

kernels = native.load('extern "C" void nothing() {}', {'nothing': ''})


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            pass
"""


@dataclass(frozen=True)
class Server:
    """A running server."""

    process: subprocess.Popen[bytes]
    url: str

    def family(self) -> list[int]:
        """Process ids of the server and of everything that descends from it."""
        parents = {}
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and (stat := (entry / "stat").read_text()):
                    fields = stat.rpartition(")")[2].split()
                    if fields[0] != "Z":
                        parents[int(entry.name)] = int(fields[1])
        family = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        return sorted(family)


@pytest.fixture
def server() -> Iterator[Server]:
    """Started on a free port, and ended at the latest here."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "KERNEL_ENV_DEVICES": "cpu", "KERNEL_ENV_SLOTS": "3"}
    command = [sys.executable, "-m", "uvicorn", "server.app:app", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + START_TIMEOUT_S
        while True:
            assert process.poll() is None, "the server ended while it was starting"
            with suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=1):
                break
            assert time.monotonic() < end, "the server did not start in time"
            time.sleep(0.1)
        yield Server(process, url)
    finally:
        process.kill()
        process.wait()


def turn(url: str, task_id: str, code: str) -> KernelObservation:
    """Observation of one submission in an episode of its own."""
    with KernelEnv(url).sync() as env:
        env.reset(task_id=task_id, max_turns=1)
        observation: KernelObservation = env.step(code).observation
        return observation


def test_sessions_at_once_get_their_own_verdicts_and_the_end_leaves_nothing(server: Server) -> None:
    honest = (KERNELS / "sum_reduce_cpp.py").read_text()
    wrong = honest.replace("class ModelNew", "BROKEN = True\n\n\nclass ModelNew").replace("+=", "-=")
    codes = [honest, wrong, "not python at all (", honest]
    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(lambda code: turn(server.url, "sum_reduce", code), codes))
    expected = [Verdict.PASSED, Verdict.INCORRECT_VALUE, Verdict.REJECTED, Verdict.PASSED]
    assert expected == [observation.verdict for observation in seen], [o.feedback for o in seen]
    assert all(o.reward == 0 for o in seen[1:3])
    for passed in (seen[0], seen[3]):
        assert passed.reward is not None
        assert 0.3 <= passed.reward <= 3.0
        assert passed.timing == "eager"
        assert passed.episode_id is not None
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert not re.search(r"libtorch|libcuda|libtriton", maps), "the server's own process must not load torch"

    def endless() -> None:
        with suppress(ClientError, OSError):  # the server goes away in the middle of it
            turn(server.url, "sum_reduce", FOREVER)

    thread = threading.Thread(target=endless)
    thread.start()
    end = time.monotonic() + 30.0
    while len(family := server.family()) < 5:
        assert time.monotonic() < end, "server, warden, zygote, judge and a candidate were to run"
        time.sleep(0.2)
    time.sleep(1.0)
    start = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(END_LIMIT_S + 5.0)
    assert time.monotonic() - start < END_LIMIT_S
    thread.join(30.0)
    end = time.monotonic() + 1.0
    while time.monotonic() < end and any(is_running(pid) for pid in family):
        time.sleep(0.05)
    assert not [pid for pid in family if is_running(pid)]


def is_running(pid: int) -> bool:
    """Whether the process is there and not only waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
