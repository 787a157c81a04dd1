"""The part of docs/benchmarks.md about many sessions at a time: tables from what `bench.throughput` wrote. Pure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from .markdown import table

HEAD = """## Many sessions at a time

`bench.throughput`: every session steps through the submissions named below in turn, every text new to the server. A
step waits for a place and for the device (`waits`), and is then judged (`judged`); medians and 95th percentiles in
seconds. `device busy` is the part of the time in which an evaluation held the device.

"""

BENT = """### Does load bend times?

Median time per call of each submission with one session, and its ratio with more.

"""


def percentile(values: Sequence[float], percent: float) -> float:
    """Smallest value that at least `percent` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def rate(load: Mapping[str, Any]) -> float:
    """Evaluations a minute that ended in a verdict."""
    judged = [step for step in load["steps"] if step["verdict"] not in {"busy", "infra_error", "none"}]
    return 60 * len(judged) / float(load["wall_s"])


def section(documents: Sequence[Mapping[str, Any]]) -> str:
    """Tables for each machine measured."""
    return HEAD + "\n".join(_of_machine(document) for document in documents) if documents else ""


def _of_machine(document: Mapping[str, Any]) -> str:
    machine = document["machine"]
    name = machine["gpu"] if machine["gpu"] != "none" else machine.get("device", "CPU")
    idle, loads = document["idle"], document["loads"]
    about = (
        f"**{name}**, {machine['cpu_cores']} cores, torch {machine['torch']}, {machine['date']}. From the start of the "
        f"server to its first verdict {document['start_to_first_s']:.1f} s. An idle session takes "
        f"{idle['mib_per_session']:.2f} MiB and {idle['cpu_s_per_session_hour']:.1f} s of CPU time an hour.\n\n"
    )
    return about + _rates(loads) + "\n" + BENT + _bent(loads)


def _rates(loads: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for load in loads:
        steps = load["steps"]
        waits = [step["wait_s"] for step in steps if step["wait_s"] is not None]
        judged = [step["eval_s"] for step in steps if step["eval_s"] is not None]
        passed = sum(step["verdict"] == "passed" for step in steps)
        rows.append(
            [
                str(load["sessions"]),
                str(len(steps)),
                f"{rate(load):.1f}",
                f"{statistics.median(waits):.2f}",
                f"{percentile(waits, 95):.2f}",
                f"{statistics.median(judged):.2f}",
                f"{percentile(judged, 95):.2f}",
                f"{100 * load['device_busy']:.0f} %",
                str(len(steps) - passed),
                f"{1e3 * load['server_cpu_s'] / max(len(steps), 1):.0f}",
            ]
        )
    head = ["sessions", "evaluations", "a minute", "waits", "95 %", "judged", "95 %", "device busy", "not passed"]
    return table([*head, "server CPU, ms a step"], rows)


def _bent(loads: Sequence[Mapping[str, Any]]) -> str:
    times: dict[str, dict[int, list[float]]] = {}
    for load in loads:
        for step in load["steps"]:
            if step["t_new_ms"] is not None:
                times.setdefault(step["file"], {}).setdefault(load["sessions"], []).append(step["t_new_ms"])
    counts = [load["sessions"] for load in loads]
    rows = []
    for file, by_sessions in sorted(times.items()):
        if counts[0] not in by_sessions:
            continue
        alone = statistics.median(by_sessions[counts[0]])
        ratios = [
            f"{statistics.median(by_sessions[count]) / alone:.3f}" if count in by_sessions else ""
            for count in counts[1:]
        ]
        rows.append([f"`{file}`", f"{alone:.4g}", *ratios])
    return table(["submission", f"t with {counts[0]}, ms", *(f"with {count}" for count in counts[1:])], rows)
