"""Writes docs/benchmarks.md from the files in bench/data.

python -m bench.report
"""

import json
import statistics
from pathlib import Path
from typing import Any

from . import throughput_report
from .markdown import table

DATA = Path(__file__).parent / "data"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"

PLOT = Path("plots") / "throughput.svg"

STAGES = ("static", "load", "bind", "first_call", "estimate", "prepare", "correctness", "timing", "teardown")
ONCE = ("card", "baseline")

INTRODUCTION = """# Benchmarks

Written by `python -m bench.report` from the files in `bench/data`; do not edit. The programs that measure are
`bench.latency`, `bench.accuracy`, `bench.kernelbench` and `bench.throughput`. Machines are shared and noisy: compare
figures of one run.
"""

BESIDE = """## One evaluation, beside KernelBench's own evaluator

Full size, same machine, same call; here through the WebSocket, with 6 correctness trials and every timed output
verified; KernelBench (revision 423217d) with 5 correctness and 100 timed trials. `first of a task` includes the
card and the timing of the reference, which are kept.

"""

SECONDS = """## Where the seconds go

Median seconds per stage. The last two columns are paid once per task and server.

"""

CLOCK = """## Is the judge's clock right?

A ReLU in Triton, timed by the judge (three evaluations), by CUDA events around a graph of K calls in a plain process,
and by Nsight Compute (`--clock-control none --cache-control all`), in one run. A graph of K calls contains the gaps
between kernels and lets the start of one overlap with the end of another; Nsight Compute times one kernel alone.

"""


def main() -> None:
    """Entry point."""
    latency, kernelbench, accuracy = (_load(name) for name in ("latency", "kernelbench", "accuracy"))
    parts = [INTRODUCTION, _machine(latency), _beside_kernelbench(latency, kernelbench), _stages(latency)]
    parts += [_kernels(latency), _accuracy(accuracy)]
    loads = [document for kind in ("cuda", "cpu") if (document := _load(f"throughput_{kind}"))]
    if loads:
        from . import plots  # noqa: PLC0415 a GPU host may have no matplotlib, and measures all the same

        plots.throughput(loads, PAGE.parent / PLOT)
        parts += [throughput_report.section(loads), f"![evaluations a minute and seconds a step]({PLOT})\n"]
    PAGE.write_text("\n".join(part for part in parts if part), encoding="utf-8")


def _load(name: str) -> dict[str, Any]:
    path = DATA / f"{name}.json"
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return document


def _machine(document: dict[str, Any]) -> str:
    machine = document["machine"]
    text = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in machine.items())
    return f"Machine: {text}. Start of the server, calibration included: {document['start_s']:.0f} s.\n"


def _groups(document: dict[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in document["evaluations"]:
        groups.setdefault((line["task"], line["kernel"]), []).append(line)
    return groups


def _typical(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Evaluations without the work done once per task."""
    return [line for line in lines if not set(ONCE) & set(line["phases"])]


def _beside_kernelbench(latency: dict[str, Any], kernelbench: dict[str, Any]) -> str:
    if not kernelbench:
        return ""
    groups = _groups(latency)
    rows = []
    for line in kernelbench["evaluations"]:
        ours = [x for x in groups.get((line["task"], line["kernel"]), []) if x["verdict"] == "passed"]
        typical = [x["wall_s"] for x in _typical(ours)]
        first = [x["wall_s"] for x in ours if x not in _typical(ours)]
        rows.append(
            [
                f"`{line['task']}`",
                f"`{line['kernel']}`",
                f"{statistics.median(typical):.2f}" if typical else "not measured",
                f"{first[0]:.2f}" if first else "",
                f"{line['wall_s']:.1f}",
                f"{statistics.median(x['t_new_ms'] for x in ours):.3f}" if ours else "",
                f"{line['runtime_ms']:.2f}",
            ]
        )
    head = ["task", "submission", "here, s", "first of a task, s", "KernelBench, s"]
    head += ["t here, ms", "t KernelBench, ms"]
    return BESIDE + table(head, rows)


def _stages(latency: dict[str, Any]) -> str:
    rows = []
    for (task, kernel), lines in _groups(latency).items():
        chosen = [x for x in (_typical(lines) or lines) if x["verdict"] == "passed"]
        if chosen:
            seconds = [statistics.median(x["phases"].get(stage, 0.0) for x in chosen) for stage in STAGES]
            once = [max(x["phases"].get(stage, 0.0) for x in lines) for stage in ONCE]
            rows.append([f"`{task}`", f"`{kernel}`", *(f"{s:.2f}" for s in (*seconds, *once))])
    return SECONDS + table(["task", "submission", *STAGES, *ONCE], rows)


def _kernels(latency: dict[str, Any]) -> str:
    rows = []
    for (task, kernel), lines in _groups(latency).items():
        passed = [x for x in lines if x["verdict"] == "passed"]
        if passed:
            last = passed[-1]
            spread = ""
            if len(passed) > 1:
                times = [x["t_new_ms"] for x in passed]
                spread = f"{100 * (max(times) - min(times)) / statistics.median(times):.1f} %"
            rows.append(
                [
                    f"`{task}`",
                    f"`{kernel}`",
                    f"{last['t_new_ms']:.4f}",
                    f"{last['t_ci_low_ms']:.4f} to {last['t_ci_high_ms']:.4f}",
                    spread,
                    f"{last['t_ref_ms']:.4f}",
                    f"{last['t_min_ms']:.4f}",
                    f"{last['speedup']:.2f}",
                    f"{last['roofline_frac']:.2f}",
                    f"{last['reward']:.2f}",
                ]
            )
    head = ["task", "submission", "t, ms", "95 %", "range over runs", "t_ref, ms", "t_min, ms"]
    head += ["speedup", "roofline", "reward"]
    return "## The example kernels\n\n" + table(head, rows)


def _accuracy(accuracy: dict[str, Any]) -> str:
    if not accuracy:
        return ""
    rows = []
    for line in accuracy["sizes"]:
        judge = statistics.median(line["judge_ms"])
        ncu = line["ncu_ms"]
        rows.append(
            [
                line["size"],
                f"{line['rows']} x {line['columns']}",
                str(line["calls"]),
                ", ".join(f"{1e3 * t:.2f}" for t in line["judge_ms"]),
                f"{1e3 * line['events_ms']:.2f}",
                f"{100 * (judge / line['events_ms'] - 1):+.1f} %",
                f"{1e3 * ncu:.2f}" if ncu else "none",
            ]
        )
    head = ["size", "shape", "K", "judge, us", "CUDA events, us", "judge over events", "ncu, us"]
    return CLOCK + table(head, rows)


if __name__ == "__main__":
    main()
