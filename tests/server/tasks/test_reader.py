"""What a task file must define, and how its CPU variant is made."""

from pathlib import Path

import pytest

from kernel_env.terms import Precision
from server.errors import InvalidRequest
from server.tasks.reader import parse_task, read_task_file

TASK = '''"""Übung: doubles."""
import torch
import torch.nn as nn

n = 4096  # rows
m = 2**20

CPU_SIZES = {
    "n": 16,
}
PRECISION = "tf32"


class Model(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    n = 5
    return [torch.randn(n, m)]


def get_init_inputs():
    return []
'''


def test_settings_of_ours_are_in_neither_variant() -> None:
    read = parse_task(TASK, "double.py")
    assert read.cpu_source is not None
    for source in (read.source, read.cpu_source):
        assert "CPU_SIZES" not in source
        assert "PRECISION" not in source


def test_gpu_source_is_otherwise_the_file() -> None:
    kept = [line for line in TASK.splitlines() if line.strip()]
    kept = [line for line in kept if line not in {"CPU_SIZES = {", '    "n": 16,', "}", 'PRECISION = "tf32"'}]
    assert [line for line in parse_task(TASK, "double.py").source.splitlines() if line.strip()] == kept


def test_only_the_top_level_constant_is_resized() -> None:
    cpu_source = parse_task(TASK, "double.py").cpu_source
    assert cpu_source is not None
    assert "\nn = 16  # rows\n" in cpu_source
    assert "    n = 5\n" in cpu_source
    assert "m = 2**20" in cpu_source


def test_declared_precision_wins() -> None:
    assert parse_task(TASK, "double.py").precision is Precision.TF32


def test_text_after_non_ascii_characters_is_edited_at_the_right_place() -> None:
    text = TASK.replace("n = 4096  # rows", 'text = "äöü"; n = 4096  # ß')
    cpu_source = parse_task(text, "double.py").cpu_source
    assert cpu_source is not None
    assert 'text = "äöü"; n = 16  # ß' in cpu_source


def test_further_sizes_replace_constants_in_turn_and_are_seen_by_nobody() -> None:
    more = 'MORE_SIZES = [{"n": 100}, {"m": 7}]\nMORE_CPU_SIZES = [{"m": 3}]\nPRECISION'
    read = parse_task(TASK.replace("PRECISION", more, 1), "double.py")
    assert read.cpu_source is not None
    shown = [read.source, read.cpu_source, *read.more_sources, *read.more_cpu_sources]
    assert not any("SIZES" in source for source in shown)
    sizes = [
        (f"\nn = {n}  # rows\n" in source, f"m = {m}\n" in source) for source, n, m in zip(shown, *VALUES, strict=True)
    ]
    assert sizes == [(True, True)] * 5
    assert read.varying == ("n", "m")


VALUES = ((4096, 16, 100, 4096, 16), ("2**20", "2**20", "2**20", 7, 3))
"""Of n and m: as written, on the CPU, at both further sizes, and at the further one on the CPU."""


def test_without_further_sizes_there_are_none() -> None:
    read = parse_task(TASK, "double.py")
    assert (read.more_sources, read.more_cpu_sources, read.varying) == ((), (), ())


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("MORE_SIZES = {}", "list of 1 to 7 dicts"),
        ("MORE_SIZES = []", "list of 1 to 7 dicts"),
        ("MORE_SIZES = [{'n': 1}] * 2", "literal list of dicts"),
        (f"MORE_SIZES = {[{'n': 1}] * 8}", "list of 1 to 7 dicts"),
        ("MORE_SIZES = [{}]", "names of constants"),
        ("MORE_SIZES = [{'k': 1}]", "MORE_SIZES names k"),
        ("MORE_CPU_SIZES = [{'k': 1}]", "MORE_CPU_SIZES names k"),
    ],
)
def test_malformed_sizes_are_refused(line: str, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        parse_task(TASK.replace("PRECISION", f"{line}\nPRECISION", 1), "double.py")


def test_further_cpu_sizes_need_a_first_one() -> None:
    text = TASK.replace('CPU_SIZES = {\n    "n": 16,\n}\n', "MORE_CPU_SIZES = [{'n': 1}]\n")
    with pytest.raises(InvalidRequest, match="MORE_CPU_SIZES needs CPU_SIZES"):
        parse_task(text, "double.py")


def test_without_cpu_sizes_there_is_one_variant() -> None:
    text = TASK.replace('CPU_SIZES = {\n    "n": 16,\n}\n', "")
    assert parse_task(text, "double.py").cpu_source is None


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("class Model(", "class Modell(", "class Model"),
        ("def forward", "def backward", "forward"),
        ("def get_inputs", "def inputs", "get_inputs"),
        ("def get_init_inputs", "def init_inputs", "get_init_inputs"),
        ('"n": 16', '"k": 16', "names k"),
        ('"n": 16', "n: 16", "CPU_SIZES"),
        ('PRECISION = "tf32"', 'PRECISION = "fp8"', "PRECISION"),
        ("return x * 2", "return x *", "line "),
    ],
)
def test_malformed_file_is_refused_by_its_name_and_the_part_at_fault(old: str, new: str, named: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_task(TASK.replace(old, new), "double.py")
    assert str(refused.value).startswith("double.py: ")
    assert named in str(refused.value)


def test_refusal_names_no_folder(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidRequest) as refused:
        read_task_file(tmp_path / "bad.py")
    assert str(tmp_path) not in str(refused.value)
    assert "bad.py" in str(refused.value)


def test_byte_order_mark_and_carriage_returns_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "double.py").write_bytes(b"\xef\xbb\xbf" + TASK.replace("\n", "\r\n").encode())
    assert read_task_file(tmp_path / "double.py") == parse_task(TASK, "double.py")
