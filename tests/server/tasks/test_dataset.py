"""The published data set, in files written by the libraries that publish it. The tasks in it are the tests' own."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from server.errors import InvalidRequest
from server.tasks.dataset import data_files, read_dataset
from server.tasks.registry import load_tasks

TASK = """import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x * SCALE
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


def row(level: int, number: int, name: str) -> dict[str, Any]:
    code = TASK.replace("SCALE", str(number))
    return {"code": code, "level": level, "name": f"{number}_{name}", "problem_id": number}


ROWS = {
    "level_1": [row(1, 10, "Ten"), row(1, 9, "Nine")],
    "level_2": [row(2, 1, "Fused_")],
    "level_3": [row(3, 1, "Net")],
    "level_4": [row(4, 1, "gpt")],
}
IDS = ["level1/9_Nine", "level1/10_Ten", "level2/1_Fused_", "level3/1_Net"]


def write_json_lines(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in ROWS.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def write_json_lines_to_one_file(folder: Path) -> Path:
    lines = [json.dumps(row) + "\n\n" for rows in ROWS.values() for row in rows]
    (folder / "all.jsonl").write_text("".join(lines))
    return folder / "all.jsonl"


def write_parquet(folder: Path) -> Path:
    """As a hub keeps it: one file for a split, below `data/`."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (folder / "data").mkdir()
    for split, rows in ROWS.items():
        parquet.write_table(pa.Table.from_pylist(rows), str(folder / "data" / f"{split}-00000-of-00001.parquet"))
    (folder / "README.md").write_text("A card.\n")
    return folder


def write_arrow(folder: Path) -> Path:
    """As `save_to_disk` writes it: a folder for a split."""
    datasets = pytest.importorskip("datasets")
    splits = {split: datasets.Dataset.from_list(rows) for split, rows in ROWS.items()}
    datasets.DatasetDict(splits).save_to_disk(str(folder / "saved"))
    return folder / "saved"


def write_arrow_file_form(folder: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.ipc")
    for split, rows in ROWS.items():
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(str(folder / f"{split}.arrow"), table.schema) as writer:
            writer.write_table(table)
    return folder


WRITERS = [write_json_lines, write_json_lines_to_one_file, write_parquet, write_arrow, write_arrow_file_form]


@pytest.mark.parametrize("write", WRITERS)
def test_every_form_gives_the_ids_of_a_checkout(tmp_path: Path, write: Any) -> None:
    source = write(tmp_path)
    tasks = load_tasks(str(source))
    assert [task.task_id for task in tasks if task.origin == source.name] == IDS
    assert tasks.get("level1/10_Ten").source == TASK.replace("SCALE", "10")
    assert [task.level for task in tasks][-4:] == [1, 1, 2, 3]


@pytest.mark.parametrize("write", WRITERS)
def test_level_4_is_refused_with_its_reason(tmp_path: Path, write: Any) -> None:
    tasks = load_tasks(str(write(tmp_path)))
    with pytest.raises(InvalidRequest, match=r"whole pretrained models, not kernels.*downloads"):
        tasks.get("level4/1_gpt")


def test_a_source_of_level_4_alone_says_why_it_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "level_4.jsonl").write_text(json.dumps(ROWS["level_4"][0]))
    with pytest.raises(InvalidRequest, match=r"nothing but level 4.*not kernels"):
        load_tasks(str(tmp_path))


def test_number_is_put_before_a_name_without_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({**ROWS["level_1"][0], "name": "Ten.py"}))
    assert [entry.task_id for entry in read_dataset(tmp_path).entries] == ["level1/10_Ten"]


@pytest.mark.parametrize("file", ["level_1.parquet", "level_1.arrow"])
def test_missing_library_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    (tmp_path / file).write_bytes(b"PAR1")
    for name in ("pyarrow", "pyarrow.parquet", "pyarrow.ipc"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidRequest, match=rf"{file}: .*pip install pyarrow"):
        load_tasks(str(tmp_path))


def test_json_lines_need_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "datasets", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(read_dataset(write_json_lines(tmp_path)).entries) == 4


@pytest.mark.parametrize("absent", ["code", "level", "name", "problem_id"])
def test_missing_column_is_named(tmp_path: Path, absent: str) -> None:
    rows = [{name: value for name, value in ROWS["level_1"][0].items() if name != absent}]
    (tmp_path / "a.jsonl").write_text(json.dumps(rows[0]))
    with pytest.raises(InvalidRequest, match=rf"a\.jsonl: row 1: no {absent};"):
        read_dataset(tmp_path)
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.Table.from_pylist(rows), str(tmp_path / "b.parquet"))
    with pytest.raises(InvalidRequest, match=rf"b\.parquet: no column {absent};"):
        read_dataset(tmp_path / "b.parquet")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"level": 2}, "level 2 in the split level_1"),
        ({"level": "1"}, "whole numbers"),
        ({"level": True}, "whole numbers"),
        ({"problem_id": -1}, "whole numbers"),
        ({"name": "../../etc"}, "name must"),
        ({"name": "a b"}, "name must"),
        ({"code": 7}, "code must be text"),
        ({"code": "def"}, r"10_Ten\.py: not Python"),
    ],
)
def test_malformed_row_is_refused(tmp_path: Path, change: dict[str, object], says: str) -> None:
    (tmp_path / "level_1.jsonl").write_text(json.dumps({**ROWS["level_1"][0], **change}))
    with pytest.raises(InvalidRequest, match=says):
        load_tasks(str(tmp_path))


def test_one_task_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(ROWS['level_1'][0])}\n" * 2)
    with pytest.raises(InvalidRequest, match=r"row 2: the task 'level1/10_Ten' exists twice"):
        read_dataset(tmp_path)


@pytest.mark.parametrize(("name", "data"), [("a.jsonl", b"{"), ("a.jsonl", b"[1]"), ("a.jsonl", b"\xff\xfe")])
def test_line_that_is_no_object_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidRequest, match="line 1 is no JSON"):
        read_dataset(tmp_path)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("data", [b"", b"ARROW1 but nothing else", b"PAR1" * 9])
def test_damaged_file_is_refused_by_its_name(tmp_path: Path, name: str, data: bytes) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidRequest, match=rf"^{name}: cannot be read as a data set"):
        read_dataset(tmp_path)


def test_task_files_come_before_data_files(tmp_path: Path) -> None:
    write_json_lines(tmp_path)
    (tmp_path / "mine.py").write_text(TASK.replace("SCALE", "2"))
    assert [task.task_id for task in load_tasks(str(tmp_path)) if task.origin != "builtin"] == ["mine"]


def test_folder_without_data_files_is_no_data_set(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("text")
    assert data_files(tmp_path) == []
