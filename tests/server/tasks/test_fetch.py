"""Fetching with git, from a local bare repository in place of the network."""

import subprocess
from pathlib import Path

import pytest

from server.errors import InvalidRequest
from server.tasks.fetch import FetchFailed, export_line, fetch, instructions
from server.tasks.pinned import Pin, kernelbench, sha256
from server.tasks.registry import load_tasks

TASK = """import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [1]
def get_init_inputs():
    return []
"""


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@x", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A bare repository whose pinned commit is not the newest."""
    work = tmp_path / "work"
    folder = work / "KernelBench/level1"
    folder.mkdir(parents=True)
    git(work, "init", "-q")
    (folder / "1_Own.py").write_text(TASK)
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "first")
    git(work, "tag", "first")
    (folder / "1_Own.py").write_text(TASK + "# later\n")
    git(work, "commit", "-q", "-a", "-m", "second")
    git(tmp_path, "clone", "-q", "--bare", str(work), str(tmp_path / "bare.git"))
    return tmp_path / "bare.git"


def pin_of(bare: Path) -> Pin:
    return Pin(git(bare, "rev-parse", "first"), {"level1/1_Own.py": sha256(TASK.encode())})


def test_fetched_folder_is_the_pinned_revision_and_loads(bare: Path, tmp_path: Path) -> None:
    pin = pin_of(bare)
    assert fetch(tmp_path / "a/kb", pin, str(bare)) is True
    tasks = load_tasks(str(tmp_path / "a/kb"))
    assert tasks.revision == pin.revision
    assert tasks.get("level1/1_Own").source == TASK
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["kb"]


def test_second_fetch_finds_everything_there(bare: Path, tmp_path: Path) -> None:
    fetch(tmp_path / "kb", pin_of(bare), str(bare))
    assert fetch(tmp_path / "kb", pin_of(bare), "/no/such/source") is False


def test_empty_folder_is_filled(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    assert fetch(tmp_path / "kb", pin_of(bare), str(bare)) is True


@pytest.mark.parametrize(
    ("hashes", "says"),
    [
        ({"level1/1_Own.py": "0" * 64}, r"changed=1 added=0 missing=0.*level1/1_Own\.py"),
        ({}, "changed=0 added=1 missing=0"),
        ({"level1/1_Own.py": sha256(TASK.encode()), "level2/1_Gone.py": "0" * 64}, "changed=0 added=0 missing=1"),
    ],
)
def test_content_other_than_pinned_leaves_no_folder(
    bare: Path, tmp_path: Path, hashes: dict[str, str], says: str
) -> None:
    with pytest.raises(FetchFailed, match=says):
        fetch(tmp_path / "kb", Pin(pin_of(bare).revision, hashes), str(bare))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.git", "work"]


@pytest.mark.parametrize("source", ["bare", "/no/such/repository", "file:///no/such/repository", "--upload-pack=false"])
def test_source_without_the_revision_fails_with_what_git_said(bare: Path, tmp_path: Path, source: str) -> None:
    with pytest.raises(FetchFailed, match=r"^git: \w+"):
        fetch(tmp_path / "kb", kernelbench(), str(bare) if source == "bare" else source)
    assert not (tmp_path / "kb").exists()


def test_missing_git_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchFailed, match="git cannot be started"):
        fetch(tmp_path / "kb", kernelbench())


def test_deadline_ends_it(bare: Path, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="did not end in time"):
        fetch(tmp_path / "kb", pin_of(bare), str(bare), timeout_s=0.0)


def test_folder_with_other_things_is_left_alone(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/mine.txt").write_text("mine")
    with pytest.raises(InvalidRequest, match="not empty"):
        fetch(tmp_path / "kb", pin_of(bare), str(bare))
    with pytest.raises(InvalidRequest, match="no folder"):
        fetch(tmp_path / "kb/mine.txt", pin_of(bare), str(bare))
    assert [path.name for path in (tmp_path / "kb").iterdir()] == ["mine.txt"]


def test_hooks_of_a_template_do_not_run(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = tmp_path / "template/hooks"
    hooks.mkdir(parents=True)
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (hooks / "post-checkout").chmod(0o755)
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))
    assert fetch(tmp_path / "kb", pin_of(bare), str(bare)) is True
    assert not (tmp_path / "ran").exists()


def test_instructions_are_commands_for_this_folder(tmp_path: Path) -> None:
    text = instructions(tmp_path / "two words", kernelbench())
    assert f"git clone https://github.com/ScalingIntelligence/KernelBench '{tmp_path}/two words'" in text
    assert f"checkout {kernelbench().revision}" in text
    assert text.endswith(export_line(tmp_path / "two words"))
