"""Feeds random input to whatever reads what strangers send, for as long as one likes.

    python -m bench.fuzz --part packets --seconds 300
    python -m bench.fuzz --part http --seconds 60            # needs `pip install schemathesis`

Parts: `packets` (what a candidate sends, and what the judge does with it), `texts` (what an agent sends, up to the
static rules), `websocket` (what a client sends), `http` (every route of the server's own OpenAPI document, by
schemathesis).
One JSON line per part in bench/data/fuzz.jsonl. The exit status says whether everything was as promised.
"""

import argparse
import asyncio
import json
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from server.testing import FakeEvaluator
from tests import fuzzing
from tests.serving import serving

from . import machine
from .corpus import DATA, revision
from .lines import store

OUT = DATA / "fuzz.jsonl"
SESSIONS_AT_ONCE = 16


class _Errors(logging.Handler):
    """Tracebacks that the server logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.found.append(record.getMessage())


def run_one_by_one(seed: int, seconds: float, attempt: Callable[[random.Random], str]) -> dict[str, Any]:
    """Inputs in this process, until the time is over."""
    end, number, faults, outcomes = time.monotonic() + seconds, 0, 0, Counter[str]()
    while time.monotonic() < end:
        try:
            outcomes[attempt(random.Random(f"{seed}/{number}"))] += 1
        except fuzzing.Fault as fault:
            faults += 1
            print(f"{seed}/{number}: {fault}", flush=True)
        number += 1
    return {"inputs": number, "faults": faults, "outcomes": dict(outcomes.most_common())}


def run_websocket(seed: int, seconds: float) -> dict[str, Any]:
    """Sessions, many at a time, until the time is over; afterwards every one of them must be free again."""
    end, faults, count = time.monotonic() + seconds, 0, Counter[str]()

    async def talk(url: str) -> None:
        nonlocal faults
        while time.monotonic() < end:
            name = f"{seed}/{count['sessions']}"
            count["sessions"] += 1
            source = random.Random(name)
            try:
                answers = await fuzzing.converse(url, source, frames=source.randrange(1, 40))
                count["answers"] += answers
            except (fuzzing.Fault, OSError) as fault:
                faults += 1
                print(f"{name}: {fault}", flush=True)

    async def talk_all(url: str) -> None:
        await asyncio.gather(*(talk(url) for _ in range(SESSIONS_AT_ONCE)))

    errors = _Errors()
    logging.getLogger().addHandler(errors)
    with serving(FakeEvaluator()) as url:
        free = _free_sessions(url)
        asyncio.run(talk_all(url))
        time.sleep(2.0)
        lost = free - _free_sessions(url)
    logging.getLogger().removeHandler(errors)
    for text in errors.found[:10]:
        print(text)
    return {"inputs": count["answers"], **count, "faults": faults + lost + len(errors.found), "sessions_lost": lost}


def _free_sessions(url: str) -> int:
    with urllib.request.urlopen(f"{url}/capacity", timeout=10) as reply:
        return int(json.loads(reply.read())["free_sessions"])


def run_http(seed: int, seconds: float) -> dict[str, Any]:
    """Every route, by schemathesis."""
    program = Path(sys.executable).with_name("schemathesis")
    if not program.exists():
        raise SystemExit("bench.fuzz: schemathesis is not installed: pip install schemathesis")
    examples = max(10, int(seconds * 5))
    with serving(FakeEvaluator()) as url:
        command = [
            str(program), "run", f"{url}/openapi.json", "--checks", "not_a_server_error", "--seed", str(seed),
            "--max-examples", str(examples), "--no-color", "--request-timeout", "10",
        ]  # fmt: skip
        environment = {**os.environ, "NO_PROXY": "*", "no_proxy": "*"}
        with tempfile.TemporaryDirectory() as folder:  # it keeps a cache where it runs
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=seconds * 10 + 120,
                env=environment,
                cwd=folder,
                check=False,
            )
        is_up = _free_sessions(url) > 0
    print(done.stdout[-3000:])
    made = re.search(r"(\d+) generated", done.stdout)
    faults = int(done.returncode != 0 or made is None) + int(not is_up)
    return {"inputs": int(made.group(1)) if made else 0, "faults": faults}


PARTS: dict[str, Callable[[int, float], dict[str, Any]]] = {
    "packets": lambda seed, s: run_one_by_one(seed, s, lambda source: fuzzing.try_packet(fuzzing.packet(source))),
    "texts": lambda seed, s: run_one_by_one(seed, s, lambda source: fuzzing.try_text(fuzzing.text(source))),
    "websocket": run_websocket,
    "http": run_http,
}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", required=True, choices=sorted(PARTS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    start = time.monotonic()
    found = PARTS[arguments.part](arguments.seed, arguments.seconds)
    line = {
        "case": arguments.part,
        **found,
        "seed": arguments.seed,
        "seconds": round(time.monotonic() - start, 1),
        "commit": revision(),
        **machine.describe(),
    }
    store(OUT, line)
    print(f"{arguments.part}: {line['inputs']} inputs, {line['faults']} faults, {line['seconds']} s")
    return int(line["faults"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
