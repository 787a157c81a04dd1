"""Seconds KernelBench's own evaluator takes for the same submissions on the same machine.

    python -m bench.kernelbench --checkout DIR --out bench/data/kernelbench.json level1/19_ReLU=FILE=triton ...

DIR is a checkout of KernelBench, which is fetched by the user. Its evaluator runs unchanged, with its defaults for a
full evaluation (5 correctness trials, 100 timed ones); only packages it imports for other purposes are replaced by
empty ones.
"""

import argparse
import json
import os
import sys
import time
import types
from pathlib import Path
from unittest.mock import MagicMock

from . import machine

UNUSED_IMPORTS = ("openai", "litellm", "dotenv", "together", "anthropic", "google", "datasets", "modal", "tomli")
CORRECT_TRIALS = 5
TIMED_TRIALS = 100


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triples", nargs="+", metavar="TASK=FILE=BACKEND")
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    for name in UNUSED_IMPORTS:
        if name not in sys.modules:
            stand_in = types.ModuleType(name)
            stand_in.__getattr__ = lambda _: MagicMock()  # type: ignore[method-assign]
            sys.modules[name] = stand_in
    sys.path.insert(0, str(arguments.checkout / "src"))
    import torch  # noqa: PLC0415 this program runs in the process it measures
    from kernelbench.eval import eval_kernel_against_ref  # type: ignore[import-not-found]  # noqa: PLC0415

    torch.zeros(1, device="cuda")  # its batch driver has a context already
    lines = []
    for triple in arguments.triples:
        task_id, file, backend = triple.split("=")
        reference = (arguments.checkout / "KernelBench" / f"{task_id}.py").read_text()
        start = time.monotonic()
        result = eval_kernel_against_ref(
            reference,
            Path(file).read_text(),
            num_correct_trials=CORRECT_TRIALS,
            num_perf_trials=TIMED_TRIALS,
            measure_performance=True,
            build_dir=Path(os.environ.get("TMPDIR", "/tmp")) / f"kernelbench-{Path(file).stem}",  # noqa: S108
            device=torch.device("cuda:0"),
            backend=backend,
        )
        seconds = time.monotonic() - start
        line = {
            "task": task_id,
            "kernel": Path(file).name,
            "backend": backend,
            "wall_s": seconds,
            "correct": bool(result and result.correctness),
            "runtime_ms": result.runtime if result else None,
        }
        lines.append(line)
        print(line, flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"machine": machine.describe(), "evaluations": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
