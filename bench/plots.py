"""Pictures beside the tables of docs/benchmarks.md, from the same files. Needs matplotlib."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from .throughput_report import percentile, rate


def throughput(documents: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Evaluations a minute, and seconds a step takes, over sessions at a time."""
    plt.switch_backend("svg")
    plt.rcParams["svg.hashsalt"] = "kernel-env"  # the same data give the same file
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for document in documents:
        machine, loads = document["machine"], document["loads"]
        name = machine["gpu"] if machine["gpu"] != "none" else machine.get("device", "CPU")
        sessions = [load["sessions"] for load in loads]
        walls = [[step["wall_s"] for step in load["steps"]] for load in loads]
        left.plot(sessions, [rate(load) for load in loads], marker="o", label=name)
        (line,) = right.plot(sessions, [statistics.median(wall) for wall in walls], marker="o", label=f"{name}, median")
        right.plot(
            sessions, [percentile(wall, 95) for wall in walls], marker=".", ls=":", color=line.get_color(), label="95 %"
        )
    left.set(xlabel="sessions", ylabel="evaluations a minute", xscale="log", ylim=(0, None))
    right.set(xlabel="sessions", ylabel="seconds a step", xscale="log", yscale="log")
    for axes in (left, right):
        counts = sorted({load["sessions"] for document in documents for load in document["loads"]})
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
