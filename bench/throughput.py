"""Evaluations a minute with so many sessions at a time, what waiting costs, and whether load bends times.

    python -m bench.throughput --out bench/data/throughput_cpu.json --sessions 1 4 16 64 --seconds 60 \
        relu=examples/kernels/relu_cpp.py softmax=examples/kernels/softmax_cpp.py

Each argument names a task and a submission. For every number of sessions, each session steps through the submissions in
turn for so many seconds, every text new to the server, and waits for the last one. References are timed before. One
server serves all of it; its own CPU time and memory are read from /proc, those of its children left out.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernel_env import KernelEnv

from . import machine
from .latency import Server, server

IDLE_SESSIONS = 64
IDLE_S = 10.0
SAMPLE_S = 0.25


@dataclass(frozen=True, slots=True)
class Pair:
    """A task, and a submission to it."""

    task_id: str
    file: str
    code: str


@dataclass(frozen=True, slots=True)
class Step:
    """One evaluation as its session saw it."""

    file: str
    verdict: str
    wall_s: float
    wait_s: float | None
    eval_s: float | None
    t_new_ms: float | None


@dataclass(slots=True)
class Load:
    """What came of one number of sessions."""

    sessions: int
    wall_s: float = 0.0
    device_busy: float = 0.0
    """Part of the time in which an evaluation held a device."""

    server_cpu_s: float = 0.0
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Idle:
    """What open sessions cost that do nothing."""

    sessions: int
    mib_per_session: float
    cpu_s_per_session_hour: float


async def _session(url: str, pairs: Sequence[Pair], number: int, end: float, load: Load) -> None:
    async with KernelEnv(url) as env:
        turn = number  # so that sessions do not march in step
        while time.monotonic() < end:
            pair = pairs[turn % len(pairs)]
            turn += 1
            await env.reset(task_id=pair.task_id, max_turns=1)
            start = time.monotonic()
            seen = (await env.step(f"{pair.code}\n# {load.sessions} {number} {turn}\n")).observation
            verdict = "none" if seen.verdict is None else seen.verdict.value
            wall_s = time.monotonic() - start
            load.steps.append(Step(pair.file, verdict, wall_s, seen.queue_wait_s, seen.eval_s, seen.t_new_ms))


async def _sample(url: str, busy: list[float]) -> None:
    """Note how many devices are busy, again and again."""
    while True:
        busy.append(await asyncio.to_thread(_busy, url))
        await asyncio.sleep(SAMPLE_S)


def _busy(url: str) -> float:
    return statistics.fmean(device["busy"] for device in _health(url)["devices"])


def _health(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/health/gpu", timeout=10) as reply:
        body: dict[str, Any] = json.loads(reply.read())
    return body


async def _run(running: Server, pairs: Sequence[Pair], sessions: int, seconds: float) -> Load:
    load, busy = Load(sessions), [0.0]
    cpu_s, start = _cpu_s(running.pid), time.monotonic()
    sampler = asyncio.create_task(_sample(running.url, busy))
    try:
        await asyncio.gather(*(_session(running.url, pairs, n, start + seconds, load) for n in range(sessions)))
    finally:
        sampler.cancel()
    load.wall_s = time.monotonic() - start
    load.server_cpu_s = _cpu_s(running.pid) - cpu_s
    load.device_busy = statistics.fmean(busy)
    return load


async def _idle(running: Server) -> Idle:
    before_mib = _resident_mib(running.pid)
    async with asyncio.TaskGroup() as group:
        opened = [group.create_task(_open(running.url)) for _ in range(IDLE_SESSIONS)]
    used_mib, cpu_s = _resident_mib(running.pid) - before_mib, _cpu_s(running.pid)
    await asyncio.sleep(IDLE_S)
    used_s = _cpu_s(running.pid) - cpu_s
    for task in opened:
        await task.result().close()
    return Idle(IDLE_SESSIONS, used_mib / IDLE_SESSIONS, used_s * 3600 / IDLE_S / IDLE_SESSIONS)


async def _open(url: str) -> KernelEnv:
    env = KernelEnv(url)
    await env.connect()
    await env.reset(seed=0)
    return env


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def pairs_of(texts: Sequence[str]) -> list[Pair]:
    """Arguments such as `relu=examples/kernels/relu_cpp.py`."""
    pairs = []
    for text in texts:
        task_id, _, file = text.partition("=")
        pairs.append(Pair(task_id, Path(file).name, Path(file).read_text(encoding="utf-8")))
    return pairs


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="TASK=FILE")
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="in which evaluations begin, per number of sessions"
    )
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    pairs = pairs_of(arguments.pairs)
    with server() as running:
        start = time.monotonic()
        first = asyncio.run(_run(running, pairs[:1], 1, 0.001))
        first_s = running.start_s + time.monotonic() - start
        for pair in pairs[1:]:
            asyncio.run(_run(running, [pair], 1, 0.001))
        idle = asyncio.run(_idle(running))
        device = _health(running.url)["devices"][0]["name"]
        loads = []
        for sessions in arguments.sessions:
            loads.append(asyncio.run(_run(running, pairs, sessions, arguments.seconds)))
            counts = Counter(step.verdict for step in loads[-1].steps)
            rate = 60 * counts["passed"] / loads[-1].wall_s
            print(f"{sessions} sessions: {rate:.1f} evaluations a minute, {dict(counts)}", flush=True)
    document = {
        "machine": machine.describe() | {"device": device},
        "start_s": running.start_s,
        "start_to_first_s": first_s,
        "first": first.steps[0].verdict,
        "idle": asdict(idle),
        "loads": [asdict(load) for load in loads],
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
