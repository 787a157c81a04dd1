"""The server as a process of its own: what it imports, and how it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernel_env import KernelEnv

ROOT = Path(__file__).parents[2]

SERVER = """
import subprocess, sys, time
import uvicorn
from server.app import make_app, server_config
from server.settings import Settings
from server.testing import FakeEvaluator

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])

class Stubborn(FakeEvaluator):
    def evaluate(self, *arguments, **options):
        time.sleep(300)

kind = Stubborn if "stubborn" in sys.argv else FakeEvaluator
evaluator = kind(delay_s=300, on_close=child.kill)
server = uvicorn.Server(server_config(make_app(Settings(), build=lambda _: evaluator), "127.0.0.1", 0))
print("child", child.pid, flush=True)
server.run()
"""

EPISODE = """
import sys
from server.app import make_app
from server.connections import Connections
from server.environment import KernelEnvironment, Services
from server.events import EventLog
from server.tasks.registry import load_tasks
from server.testing import FakeEvaluator, passed
from kernel_env.models import KernelAction

services = Services(FakeEvaluator([passed()]), load_tasks(), EventLog(fd=None), Connections(), max_turns=1)
environment = KernelEnvironment(lambda: services)
environment.reset(seed=0)
assert environment.step(KernelAction(code="import torch")).done
for name in ("torch", "triton", "numpy.cuda", "server.evaluator.evaluator", "server.sandbox.doctor"):
    assert name not in sys.modules, name
"""


def environ(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_whole_episode_imports_no_torch() -> None:
    subprocess.run([sys.executable, "-c", EPISODE], env=environ(), check=True, timeout=120)


@dataclass
class Server:
    """One server process, with a child of its own."""

    process: subprocess.Popen[bytes]
    output: Path

    def find(self, pattern: str) -> str:
        deadline = time.monotonic() + 90.0
        while not (found := re.search(pattern, self.output.read_text())):
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.05)
        return found[1]


def start(kind: str, folder: Path) -> Server:
    output = folder / kind
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, kind], env=environ(), stdout=sink, stderr=subprocess.STDOUT
        )
    return Server(process, output)


@pytest.mark.slow
def test_sigterm_during_a_step_ends_everything_within_five_seconds(tmp_path: Path) -> None:
    """Also when a step thread never ends by itself."""
    servers = [start(kind, tmp_path) for kind in ("usual", "stubborn")]  # at once: each takes seconds to import
    try:
        for server in servers:
            child = int(server.find(r"child (\d+)"))
            assert is_alive(child)
            with KernelEnv(server.find(r"running on (http://[\d.:]+)"), message_timeout_s=1.0).sync() as env:
                env.reset(task_id="relu")
                with pytest.raises(TimeoutError):
                    env.step("x")
                began = time.monotonic()
                server.process.send_signal(signal.SIGTERM)
                server.process.wait(10.0)
                assert time.monotonic() - began < 5.0
                assert not is_alive(child)
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()
