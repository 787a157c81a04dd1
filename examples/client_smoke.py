"""Plays one turn against a running server and requires that an honest kernel passes.

    python examples/client_smoke.py --url http://127.0.0.1:8000

Saves the prompt an agent would get to task_prompt.txt. Exits with 0 if the kernel passed, else with 1 and the reason.
"""

import argparse
import sys
from pathlib import Path

from kernel_env import ClientError, KernelEnv, KernelObservation, Verdict

KERNELS = Path(__file__).parent / "kernels"
SUFFIX = {"cuda": "triton", "cpu": "cpp"}
"""Language each kind of device is tried in."""


class SmokeFailure(Exception):
    """What went wrong, for the terminal."""


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="base URL of the server")
    parser.add_argument("--task", default="relu", help="task to solve (default: relu)")
    parser.add_argument("--kernel", type=Path, help="submission (default: the one of examples/kernels for this task)")
    parser.add_argument("--prompt-file", type=Path, default=Path("task_prompt.txt"), help="where the prompt is saved")
    arguments = parser.parse_args()
    try:
        play(arguments.url, arguments.task, arguments.kernel, arguments.prompt_file)
    except (SmokeFailure, ClientError, ConnectionError) as error:
        sys.exit(f"smoke test failed: {error}")


def play(url: str, task: str, kernel: Path | None, prompt_file: Path) -> None:
    """One episode of one turn.

    Raises:
        SmokeFailure: The kernel did not pass.
    """
    with KernelEnv(url).sync() as env:
        start = env.reset(task_id=task, max_turns=1).observation
        prompt_file.write_text(start.problem, encoding="utf-8")
        print(f"task {start.task_id} on {start.device} ({start.gpu_id}), isolation {start.isolation}")
        print(f"prompt of {len(start.problem)} characters saved to {prompt_file}")
        path = kernel or kernel_for(task, start.gpu_id or "cpu")
        if not path.is_file():
            raise SmokeFailure(f"no kernel for task {task!r} there: {path}; name one with --kernel")
        print(f"submitting {path.name} ...", flush=True)
        result = env.step(path.read_text(encoding="utf-8"))
    report(result.observation)
    if result.observation.verdict is not Verdict.PASSED or not result.observation.correct:
        raise SmokeFailure(f"expected verdict passed, got {result.observation.verdict}\n{result.observation.feedback}")


def kernel_for(task: str, gpu_id: str) -> Path:
    """File in examples/kernels that solves `task` on a device of that kind; `level1/19_ReLU` is solved by `relu`."""
    kind = "cuda" if gpu_id.startswith("cuda") else "cpu"
    name = task.rpartition("/")[2].rpartition("_")[2] if "/" in task else task
    return KERNELS / f"{name.lower()}_{SUFFIX[kind]}.py"


def report(seen: KernelObservation) -> None:
    """Print what the judge found."""
    print(f"verdict            {seen.verdict}")
    print(f"reward             {shown(seen.reward)}  (0.3 correct, 3.0 at the roofline)")
    print(f"speedup            {shown(seen.speedup)}  ({shown(seen.t_ref_ms)} ms / {shown(seen.t_new_ms)} ms)")
    print(f"roofline fraction  {shown(seen.roofline_frac)}  (floor {shown(seen.t_min_ms)} ms, {seen.bound} bound)")
    print(f"timing             {seen.timing}")
    print(f"evaluation         {shown(seen.eval_s)} s, after {shown(seen.queue_wait_s)} s in the queue")
    for name, seconds in seen.phases.items():
        print(f"  {name:<16} {seconds:.3f} s")


def shown(value: float | None) -> str:
    """A number for the terminal."""
    return "-" if value is None else f"{value:.4g}"


if __name__ == "__main__":
    main()
