"""The command line: exit codes, and one JSON object from `evaluate --json`."""

import io
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernel_env.terms import Stage, Verdict
from server import cli, runtime
from server.errors import EvaluatorError
from server.sandbox import doctor
from server.settings import Settings
from server.tasks import commands
from server.tasks.pinned import Pin, sha256
from server.testing import FakeEvaluator, failed, passed

TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


@dataclass
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def kernel_env(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command line against a fake evaluator."""
    for name in ("KERNEL_ENV_TASKS", "KERNEL_ENV_MAX_TURNS", "KERNEL_ENV_DEVICES"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, evaluator: FakeEvaluator | Exception | None = None) -> Ran:
        def build(_: Settings) -> FakeEvaluator:
            if isinstance(evaluator, Exception):
                raise evaluator
            assert evaluator is not None, "no evaluator is needed for this"
            return evaluator

        monkeypatch.setattr(cli.judge_once, "__defaults__", (build,))
        code = cli.run(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def submission(tmp_path: Path) -> str:
    path = tmp_path / "kernel.py"
    path.write_text("class ModelNew: pass\n")
    return str(path)


def test_tasks_are_listed_and_shown(kernel_env: Any) -> None:
    tasks = json.loads(kernel_env("tasks", "list", "--json").out)
    assert {"task_id": "relu", "level": 1, "split": "train", "precision": "ieee", "origin": "builtin"} in tasks
    assert kernel_env("tasks", "list").out.count("\n") == len(tasks)
    shown = kernel_env("tasks", "show", "relu")
    assert shown.code == 0
    assert "# split: train" in shown.out
    assert "class Model(nn.Module):" in shown.out


def test_evaluate_prints_one_json_object_and_closes_the_evaluator(kernel_env: Any, submission: str) -> None:
    evaluator = FakeEvaluator([passed()])
    ran = kernel_env("evaluate", "--task", "relu", "--file", submission, "--json", evaluator=evaluator)
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    fields = json.loads(ran.out)
    assert (fields["verdict"], fields["done"], fields["task_id"]) == ("passed", True, "relu")
    assert fields["reward"] == pytest.approx(1.65)
    assert evaluator.is_closed


def test_a_verdict_that_is_bad_news_is_no_failure_of_the_command(kernel_env: Any, submission: str) -> None:
    evaluator = FakeEvaluator([failed(Verdict.COMPILE_ERROR, Stage.COMPILE, "line 3: expected ;")])
    ran = kernel_env("evaluate", "--task", "relu", "--file", submission, evaluator=evaluator)
    assert ran.code == 0
    assert "verdict: compile_error" in ran.out
    assert "line 3: expected ;" in ran.out


def test_a_submission_can_come_from_standard_input(kernel_env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = FakeEvaluator()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x = 1\r\n")))
    assert kernel_env("evaluate", "--task", "relu", "--file", "-", evaluator=evaluator).code == 0
    assert evaluator.calls[0].code == "x = 1\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("evaluate", "--task", "relo", "--file", "{file}"), "relu"),
        (("evaluate", "--task", "relu", "--file", "/no/such/file"), "cannot read"),
        (("evaluate", "--task", "relu", "--file", "{binary}"), "not UTF-8"),
        (("evaluate", "--task", "relu", "--file", "{long}"), "262144"),
        (("evaluate", "--task", "relu", "--file", "{file}", "--language", "cuda"), "cpp, triton"),
        (("evaluate", "--task", "relu", "--file", "{file}", "--device", "tpu"), "--device"),
        (("evaluate", "--task", "relu", "--file", "{file}", "--device", "cuda:99"), "--device"),
        (("evaluate", "--task", "relu"), "--file"),
        (("evaluate", "--file", "{file}"), "--task-file"),
        (("evaluate", "--file", "{file}", "--task", "relu", "--task-file", "{file}"), "not both"),
        (("evaluate", "--file", "{file}", "--task-file", "/no/such.py"), "does not exist"),
        (("evaluate", "--file", "{file}", "--task-file", "{file}"), "must define class Model"),
        (("tasks", "lint", "/no/such.py"), "cannot be read"),
        (("tasks", "lint"), "FILE"),
        (("tasks", "fetch", "{file}"), "no folder"),
        (("evaluate", "--file", "{file}", "--tusk", "relu"), "--tusk"),
        (("tasks", "show", "relo"), "relu"),
        (("jump",), "jump"),
    ],
)
def test_bad_usage_exits_with_2_and_says_why(
    kernel_env: Any, submission: str, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "long").write_text("x" * 300_000)
    names = {"{file}": submission, "{binary}": str(tmp_path / "binary"), "{long}": str(tmp_path / "long")}
    ran = kernel_env(*(names.get(argument, argument) for argument in arguments), evaluator=FakeEvaluator())
    assert ran.code == 2
    assert says in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("command", [("serve",), ("tasks", "list"), ("doctor",)])
def test_a_bad_setting_exits_with_2_and_is_named(
    kernel_env: Any, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("KERNEL_ENV_MAX_TURNS", "0")
    ran = kernel_env(*command)
    assert ran.code == 2
    assert ran.err == "kernel-env: KERNEL_ENV_MAX_TURNS='0': expected a whole number from 1 to 1000\n"


def test_task_file_is_the_task(kernel_env: Any, submission: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(kernel_env("tasks", "show", "linear_gelu").out)
    evaluator = FakeEvaluator([passed()])
    task_file = str(tmp_path / "mine.py")
    ran = kernel_env("evaluate", "--task-file", task_file, "--file", submission, "--json", evaluator=evaluator)
    fields = json.loads(ran.out)
    assert (ran.code, fields["task_id"], fields["level"]) == (0, "mine", 2)
    assert evaluator.calls[0].task_id == "mine"


def test_lint_exits_with_0_or_1_and_says_where(kernel_env: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(TASK)
    ran = kernel_env("tasks", "lint", str(path))
    assert (ran.code, ran.out) == (0, f"{path}: nothing found\n")
    path.write_text(TASK.replace("[torch.rand(8)]", "[]"))
    ran = kernel_env("tasks", "lint", str(path), "--run")  # not run: nothing could come of it
    says = "get_inputs returns 0 values, Model.forward takes 1 besides self"
    assert (ran.code, ran.out) == (1, f"{path}:6: arity: {says}\n")
    found = json.loads(kernel_env("tasks", "lint", str(path), "--json").out)
    assert found == {"findings": [{"line": 6, "rule": "arity", "message": says}], "facts": []}


def test_lint_with_a_run_tells_what_a_judge_would(kernel_env: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TASK.replace("torch.relu(x)", "x * 0"))
    ran = kernel_env("tasks", "lint", str(tmp_path / "mine.py"), "--run")
    assert ran.code == 1
    assert "outputs: float32 (8)\n" in ran.out
    assert "mine.py: run: zeros would pass with every kind of inputs" in ran.out


def test_fetch_prints_what_to_export(kernel_env: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare, pin = tmp_path / "bare.git", tmp_path / "work"
    (pin / "KernelBench/level1").mkdir(parents=True)
    (pin / "KernelBench/level1/1_Own.py").write_text(TASK)
    git = ["git", "-C", str(pin), "-c", "user.name=n", "-c", "user.email=e@x"]
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["commit", "-q", "-m", "m"],
        ["clone", "-q", "--bare", ".", str(bare)],
    ):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    monkeypatch.setattr(commands, "kernelbench", lambda: Pin(commit, {"level1/1_Own.py": sha256(TASK.encode())}))
    ran = kernel_env("tasks", "fetch", str(tmp_path / "kb"), "--source", str(bare))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == f"export KERNEL_ENV_TASKS={tmp_path}/kb"
    assert ", fetched, " in ran.out
    assert ", there already, " in kernel_env("tasks", "fetch", str(tmp_path / "kb")).out


def test_fetch_without_a_source_exits_with_1_and_gives_the_commands(kernel_env: Any, tmp_path: Path) -> None:
    ran = kernel_env("tasks", "fetch", str(tmp_path / "kb"), "--source", str(tmp_path / "none"))
    assert (ran.code, ran.out) == (1, "")
    assert f"    git clone https://github.com/ScalingIntelligence/KernelBench {tmp_path}/kb\n" in ran.err
    assert ran.err.endswith(f"    export KERNEL_ENV_TASKS={tmp_path}/kb\n")


@pytest.mark.parametrize("fault", [EvaluatorError("no device"), KeyError("bug")])
def test_our_own_fault_exits_with_3(kernel_env: Any, submission: str, fault: Exception) -> None:
    ran = kernel_env("evaluate", "--task", "relu", "--file", submission, "--json", evaluator=fault)
    assert (ran.code, ran.out) == (3, "")


def test_an_evaluation_that_fails_on_our_side_exits_with_3_and_still_prints(kernel_env: Any, submission: str) -> None:
    evaluator = FakeEvaluator([EvaluatorError("judge died")])
    ran = kernel_env("evaluate", "--task", "relu", "--file", submission, "--json", evaluator=evaluator)
    assert ran.code == 3
    assert json.loads(ran.out)["infra_error"] == "judge died"


def test_device_of_the_command_line_replaces_that_of_the_environment(
    kernel_env: Any, submission: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Settings] = []

    class Recording(runtime.Runtime):
        def __init__(self, settings: Settings, *rest: Any, **options: Any) -> None:
            seen.append(settings)
            super().__init__(settings, *rest, **options)

    monkeypatch.setattr(cli, "Runtime", Recording)
    monkeypatch.setenv("KERNEL_ENV_DEVICES", "cuda:9")
    arguments = ("evaluate", "--task", "relu", "--file", submission, "--device", "cpu")
    assert kernel_env(*arguments, evaluator=FakeEvaluator()).code == 0
    assert seen[0].devices == ("cpu",)


def test_doctor_prints_its_checks_and_fails_if_one_is_refused(kernel_env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [doctor.Check("gcc", doctor.State.OK, "found"), doctor.Check("mps", doctor.State.REFUSED, "it runs")]
    monkeypatch.setattr(cli, "run_checks", lambda **_: tuple(checks))
    monkeypatch.setenv("KERNEL_ENV_DEVICES", "cpu")
    ran = kernel_env("doctor", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)[1] == {"name": "mps", "state": "refused", "detail": "it runs"}
    del checks[1]
    ran = kernel_env("doctor")
    assert (ran.code, ran.out) == (0, "ok        gcc  found\n")
