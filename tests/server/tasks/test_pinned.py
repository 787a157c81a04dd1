"""Whether files are those of the pinned revision."""

import logging
import subprocess
from pathlib import Path

import pytest

from server.tasks.pinned import PINNED_REVISION, Pin, difference, kernelbench, sha256
from server.tasks.registry import load_tasks

PIN = Pin("r", {"level1/1_A.py": sha256(b"a"), "level1/2_B.py": sha256(b"b"), "level2/1_C.py": sha256(b"c")})

TASK = """import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [1]
def get_init_inputs():
    return []
"""


def test_list_is_of_the_pinned_revision_and_of_all_its_files() -> None:
    pin = kernelbench()
    levels = [path.partition("/")[0] for path in pin.hashes]
    assert pin.revision == PINNED_REVISION
    assert [levels.count(f"level{level}") for level in (1, 2, 3, 4)] == [100, 100, 50, 20]
    assert all(len(bytes.fromhex(digest)) == 32 for digest in pin.hashes.values())


def test_digest_is_that_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"line\r\n")
    printed = subprocess.run(["sha256sum", str(tmp_path / "file")], check=True, capture_output=True, text=True).stdout
    assert printed.split()[0] == sha256(b"line\r\n")


def test_files_as_pinned_do_not_differ() -> None:
    assert not difference({"level1/1_A.py": b"a", "level1/2_B.py": b"b", "level2/1_C.py": b"c"}, PIN)


def test_differences_are_told_apart() -> None:
    found = difference({"level1/1_A.py": b"A", "level1/3_D.py": b"d"}, PIN)
    assert (found.changed, found.added, found.missing) == (("level1/1_A.py",), ("level1/3_D.py",), ("level1/2_B.py",))
    assert str(found) == "changed=1 added=1 missing=1"


def test_level_that_is_not_there_is_not_missing() -> None:
    assert not difference({"level2/1_C.py": b"c"}, PIN)


def test_loading_a_checkout_that_differs_warns_with_the_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "level1").mkdir()
    for name in ("19_ReLU", "1_Square_matrix_multiplication_", "101_Mine"):
        (tmp_path / "level1" / f"{name}.py").write_text(TASK)
    with caplog.at_level(logging.WARNING):
        tasks = load_tasks(str(tmp_path))
    assert len(tasks.select(level=1)) > 3
    expected = f"tasks_differ_from_pinned revision={PINNED_REVISION[:12]} changed=2 added=1 missing=98"
    assert [record.message for record in caplog.records] == [expected]


def test_single_file_of_a_checkout_is_missing_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1/19_ReLU.py").write_text(TASK)
    load_tasks(str(tmp_path / "level1/19_ReLU.py"))
    assert [record.message.partition("changed")[2] for record in caplog.records] == ["=1 added=0 missing=0"]


def test_tasks_of_ones_own_in_levels_are_compared_with_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1/1_Mine.py").write_text(TASK)
    assert load_tasks(str(tmp_path)).differences is None
    assert caplog.records == []
