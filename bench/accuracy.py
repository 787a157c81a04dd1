"""The judge's time beside CUDA events and Nsight Compute, for ReLU kernels of about 5 us to 3 ms.

    python -m bench.accuracy --out bench/data/accuracy.json

Three programs measure the same kernel in one run: the evaluator (its judge, its sandbox); a plain process that
captures K calls on K inputs in a CUDA graph and puts events around the replay; and `ncu` with clocks left alone and
caches flushed. A size that is in the file, from this machine and day, is not measured again.
"""

import argparse
import csv
import io
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from kernel_env.terms import Language, Precision, Split
from server.evaluator.evaluator import Evaluator
from server.evaluator.results import Submission
from server.settings import Settings
from server.tasks.task import Task

from . import machine

ROOT = Path(__file__).resolve().parents[1]
ROWS = {"5 us": 256, "50 us": 6400, "500 us": 64_000, "3 ms": 393_216}
COLUMNS = 4096
TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn({rows}, {columns})]


def get_init_inputs():
    return []
"""
EVENTS = """
import sys, importlib.util, statistics, torch
path, rows, columns, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
spec = importlib.util.spec_from_file_location("submission", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
model = module.ModelNew()
inputs = [torch.randn(rows, columns, device="cuda") for _ in range(calls)]
model(inputs[0])
torch.cuda.synchronize()
if len(sys.argv) > 5:
    for _ in range(4):
        model(inputs[0])
    torch.cuda.synchronize()
    sys.exit()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    outputs = [model(x) for x in inputs]
times = []
for _ in range(11):
    for x in inputs:
        x.normal_()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    times.append(start.elapsed_time(end) / calls)
print(statistics.median(times[1:]))
"""


def events_ms(kernel: Path, rows: int, calls: int) -> float:
    """Milliseconds per call by CUDA events around a graph of `calls` calls."""
    command = [sys.executable, "-c", EVENTS, str(kernel), str(rows), str(COLUMNS), str(calls)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return float(done.stdout.split()[-1])


def ncu_ms(kernel: Path, rows: int) -> float | None:
    """Milliseconds of the kernel by Nsight Compute, caches flushed; None where it is not installed or fails."""
    command = [
        "ncu", "--clock-control", "none", "--cache-control", "all", "--metrics", "gpu__time_duration.sum",
        "--kernel-name", "regex:relu", "--launch-skip", "1", "--launch-count", "4", "--csv",
        sys.executable, "-c", EVENTS, str(kernel), str(rows), str(COLUMNS), "1", "once",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        print("ncu:", error, getattr(error, "stdout", "")[-500:], flush=True)
        return None
    table = done.stdout[done.stdout.find('"ID"') :]
    scale = {"ns": 1e-6, "us": 1e-3, "usecond": 1e-3, "nsecond": 1e-6, "ms": 1.0, "msecond": 1.0, "s": 1e3}
    times = [
        float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]]
        for row in csv.DictReader(io.StringIO(table))
        if row.get("Metric Name") == "gpu__time_duration.sum"
    ]
    return statistics.median(times) if times else None


def already_measured(file: Path) -> list[dict[str, object]]:
    """Lines of a run on this machine that was cut off. A row compares within itself, so rows may be of two runs."""
    if not file.exists():
        return []
    document = json.loads(file.read_text(encoding="utf-8"))
    return list(document["sizes"]) if document["machine"] == machine.describe() else []


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=3, help="evaluations per size")
    arguments = parser.parse_args()
    kernel = ROOT / "examples" / "kernels" / "relu_triton.py"
    lines = already_measured(arguments.out)
    evaluator = Evaluator(Settings.from_environ(os.environ))
    try:
        for name, rows in ROWS.items():
            if any(line["size"] == name for line in lines):
                continue
            source = TASK.format(rows=rows, columns=COLUMNS)
            task = Task(f"accuracy_{rows}", 1, Split.RESERVED, Precision.IEEE, source)
            results = [
                evaluator.evaluate(task, Submission(f"{kernel.read_text()}\n# {n}\n", Language.TRITON))
                for n in range(arguments.repeat)
            ]
            times = [r.timing.new_ms for r in results if r.timing is not None]
            if len(times) < arguments.repeat:
                print(results[0].verdict, results[0].feedback, flush=True)
                continue
            timing = results[0].timing
            assert timing is not None
            line = {
                "size": name,
                "rows": rows,
                "columns": COLUMNS,
                "judge_ms": times,
                "calls": timing.calls,
                "ci_ms": [timing.ci_low_ms, timing.ci_high_ms],
                "events_ms": events_ms(kernel, rows, min(timing.calls, 512)),
                "ncu_ms": ncu_ms(kernel, rows),
            }
            lines.append(line)
            print(line, flush=True)
            # After each size: the largest takes minutes, and a run that is cut off keeps what it has.
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps({"machine": machine.describe(), "sizes": lines}, indent=1) + "\n")
    finally:
        evaluator.close()


if __name__ == "__main__":
    main()
