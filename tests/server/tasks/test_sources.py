"""What KERNEL_ENV_TASKS may name, and the ids that come of it."""

from pathlib import Path

import pytest

from kernel_env.terms import Precision
from server.errors import InvalidRequest
from server.tasks.listing import MAX_TASK_BYTES
from server.tasks.pinned import PINNED_REVISION
from server.tasks.registry import load_one, load_tasks
from server.tasks.roles import has_free_inputs
from server.tasks.sources import read_source

TASK = """import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


def write(path: Path, text: str = TASK) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_single_file_is_one_task(tmp_path: Path) -> None:
    write(tmp_path / "other.py", "not looked at (")
    task = load_one(str(write(tmp_path / "mine.py")))
    assert (task.task_id, task.level, task.origin) == ("mine", 1, "mine.py")


def test_header_gives_level_and_precision_of_a_single_file(tmp_path: Path) -> None:
    task = load_one(str(write(tmp_path / "mine.py", f"# level: 3\n# precision: tf32\n{TASK}")))
    assert (task.level, task.precision, task.source) == (3, Precision.TF32, TASK)


@pytest.mark.parametrize("picked", ["level1/95_CrossEntropyLoss.py", "level1"])
def test_part_of_a_checkout_keeps_the_ids_and_with_them_the_input_roles(tmp_path: Path, picked: str) -> None:
    inner = tmp_path / "KernelBench"
    write(inner / "level1/95_CrossEntropyLoss.py")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text(PINNED_REVISION)
    task = load_one(str(inner / picked))
    assert (task.task_id, task.level) == ("level1/95_CrossEntropyLoss", 1)
    assert not has_free_inputs(task.task_id)
    assert task.origin.endswith(f"@{PINNED_REVISION[:12]}")


def test_header_that_contradicts_the_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "level2/1_Own.py", f"# level: 1\n{TASK}")
    with pytest.raises(InvalidRequest, match=r"1_Own\.py: the header says level 1.*says level 2"):
        load_tasks(str(tmp_path))


def test_header_of_a_plain_folder_sets_the_level_of_its_file_alone(tmp_path: Path) -> None:
    write(tmp_path / "one.py")
    write(tmp_path / "two.py", f"# level: 2\n{TASK}")
    tasks = load_tasks(str(tmp_path))
    assert (tasks.get("one").level, tasks.get("two").level) == (1, 2)


@pytest.mark.parametrize("task_id", [task.task_id for task in load_tasks()])
def test_what_tasks_show_prints_is_a_task_file_with_the_same_facts(tmp_path: Path, task_id: str) -> None:
    task = load_tasks().get(task_id)
    facts = {"task_id": task_id, "level": task.level, "split": task.split.value, "precision": task.precision.value}
    shown = "".join(f"# {name}: {value}\n" for name, value in facts.items())
    again = load_one(str(write(tmp_path / "copy.py", shown + task.source)))
    assert (again.level, again.precision) == (task.level, task.precision)
    assert again.source.endswith(task.source)
    assert "# level:" not in again.source


@pytest.mark.parametrize("name", ["level4", "level4/1_own.py", "."])
def test_level_4_alone_is_refused_with_its_reason(tmp_path: Path, name: str) -> None:
    write(tmp_path / "level4/1_own.py")
    with pytest.raises(InvalidRequest, match=r"nothing but level 4.*whole pretrained models.*downloads"):
        load_tasks(str(tmp_path / name))


@pytest.mark.parametrize("name", ["tasks.txt", "tasks.tar.xz", "tasks"])
def test_file_of_another_kind_names_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"'{name}' is none of .*\.py, \.tar, .*\.zip, \.parquet"):
        read_source(str(write(tmp_path / name)))


@pytest.mark.parametrize("name", ["missing", "missing.py", "missing.tar.gz", "missing.jsonl"])
def test_missing_source_is_refused_by_name_and_without_its_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_source(str(tmp_path / name))
    assert str(refused.value) == f"task source {name!r} does not exist"


def test_huge_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "huge.py", TASK + "#" * MAX_TASK_BYTES)
    with pytest.raises(InvalidRequest, match=r"huge\.py: a task file has at most"):
        read_source(str(tmp_path))


def test_one_task_is_not_two(tmp_path: Path) -> None:
    write(tmp_path / "one.py")
    write(tmp_path / "two.py")
    with pytest.raises(InvalidRequest, match="holds 2 tasks"):
        load_one(str(tmp_path))


def test_order_is_level_number_name(tmp_path: Path) -> None:
    for name in ("level2/1_B", "level1/10_A", "level1/9_C", "level1/9_A", "level10/1_D", "level1/Plain"):
        write(tmp_path / f"{name}.py")
    ids = [entry.task_id for entry in read_source(str(tmp_path)).entries]
    assert ids == ["level1/Plain", "level1/9_A", "level1/9_C", "level1/10_A", "level2/1_B", "level10/1_D"]
