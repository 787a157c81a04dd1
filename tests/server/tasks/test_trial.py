"""Running a reference once: what is said about its outputs, and about answers that need no kernel."""

from dataclasses import replace

from server.tasks import trial
from server.tasks.registry import load_tasks
from server.tasks.task import Task

RELU = load_tasks().get("relu")

TASK = """import os
import signal
import time

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        BODY


def get_inputs():
    return [torch.rand(64, 64)]


def get_init_inputs():
    return []
"""


def task(body: str) -> Task:
    source = TASK.replace("BODY", body)
    return replace(RELU, task_id="own", source=source, cpu_source=None)


def test_good_task_has_facts_and_no_findings() -> None:
    """Prints of the task do not disturb the answer."""
    outcome = trial.run(task("print('text'); os.write(1, b'bytes'); return torch.relu(x), x.argmax(dim=1)"))
    assert outcome.findings == ()
    assert outcome.facts == (
        "outputs: float32 (64, 64); int64 (64)",
        "two runs: equal bit for bit",
        "inputs drawn from: as_given, normal, uniform, spiky",
        "tolerance: 1 times that of the contract",
        "zeros: would fail",
        "constant: would fail",
        "row means: would fail",
        "input: cannot be tried, no input has the shape and type of the output",
        "earlier output: would fail",
        "eight bits: would fail",
        "half of the inputs: would fail",
        "inputs in TF32: would fail",
    )


def test_shortcut_that_always_holds_is_a_finding() -> None:
    outcome = trial.run(task("return x * 0 + 3"))
    found = [finding.message.split(" would")[0] for finding in outcome.findings]
    assert found == ["constant", "row means", "earlier output", "eight bits", "half of the inputs", "inputs in TF32"]
    assert "zeros: would fail" in outcome.facts


def test_refusal_is_a_finding_with_the_judges_reason_and_a_hint() -> None:
    (found,) = trial.run(task("raise KeyError('gone')")).findings
    assert found.message.startswith("cannot be judged: Model.forward failed: KeyError: 'gone'")
    assert "no CPU_SIZES" in found.message


def test_process_that_dies_is_a_finding() -> None:
    (found,) = trial.run(task("os.kill(os.getpid(), signal.SIGSEGV)")).findings
    assert "ended by SIGSEGV" in found.message


def test_run_beyond_its_limit_is_ended() -> None:
    (found,) = trial.run(task("time.sleep(600)"), timeout_s=1.0).findings
    assert found.message.startswith("no result within 1 s")
