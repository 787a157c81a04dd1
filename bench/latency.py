"""Seconds per evaluation, stage by stage, through a real server and its WebSocket.

    python -m bench.latency --out bench/data/latency.json level1/19_ReLU=examples/kernels/relu_triton.py ...

Each argument names a task and a submission; a third part (`=5`) says how often it is evaluated, each time in a new
episode. KERNEL_ENV_TASKS must name a KernelBench checkout for tasks such as `level1/19_ReLU`.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernel_env import KernelEnv

from . import machine

ROOT = Path(__file__).resolve().parents[1]
START_TIMEOUT_S = 240.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server that was started for a measurement."""

    url: str
    start_s: float
    """Seconds until it was ready."""

    pid: int


@contextmanager
def server() -> Iterator[Server]:
    """A server on a free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "server.app:app", "--host", "127.0.0.1", "--port", str(port)]
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, env=dict(os.environ))
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            if process.poll() is not None:
                raise SystemExit(f"the server ended with status {process.returncode}")
            try:
                urllib.request.urlopen(f"{url}/health", timeout=1).close()
                break
            except OSError:
                if time.monotonic() - start > START_TIMEOUT_S:
                    raise SystemExit("the server did not start") from None
                time.sleep(0.1)
        yield Server(url, time.monotonic() - start, process.pid)
    finally:
        process.terminate()
        process.wait(10)


def measure(url: str, task_id: str, kernel: Path, count: int) -> list[dict[str, object]]:
    """One line per evaluation."""
    lines: list[dict[str, object]] = []
    code = kernel.read_text(encoding="utf-8")
    for number in range(count):
        with KernelEnv(url).sync() as env:
            env.reset(task_id=task_id, max_turns=1)
            start = time.monotonic()
            result = env.step(f"{code}\n# {number}\n")
            seen = result.observation
            lines.append(
                {
                    "task": task_id,
                    "kernel": kernel.name,
                    "number": number,
                    "verdict": seen.verdict,
                    "feedback": seen.feedback,
                    "reward": result.reward,
                    "wall_s": time.monotonic() - start,
                    "eval_s": seen.eval_s,
                    "phases": seen.phases,
                    "t_new_ms": seen.t_new_ms,
                    "t_ci_low_ms": seen.t_ci_low_ms,
                    "t_ci_high_ms": seen.t_ci_high_ms,
                    "t_ref_ms": seen.t_ref_ms,
                    "t_ref_eager_ms": seen.t_ref_eager_ms,
                    "t_min_ms": seen.t_min_ms,
                    "speedup": seen.speedup,
                    "roofline_frac": seen.roofline_frac,
                    "timing": seen.timing,
                    "calls": seen.timed_calls,
                }
            )
    return lines


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="TASK=FILE[=COUNT]")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    lines: list[dict[str, object]] = []
    with server() as running:
        for pair in arguments.pairs:
            task_id, file, *count = pair.split("=")
            measured = measure(running.url, task_id, Path(file), int(count[0]) if count else 1)
            lines += measured
            walls = [float(str(line["wall_s"])) for line in measured]
            print(task_id, Path(file).name, measured[-1]["verdict"], [round(w, 2) for w in walls], flush=True)
            print("   ", measured[-1]["phases"], measured[-1]["t_new_ms"], measured[-1]["roofline_frac"], flush=True)
            if measured[-1]["verdict"] != "passed":
                print("   ", str(measured[-1]["feedback"])[:1500], flush=True)
            if len(walls) > 2:
                print("    median after the first", round(statistics.median(walls[1:]), 3), flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": machine.describe(), "start_s": running.start_s, "evaluations": lines}
    arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
