"""Whatever a candidate leaves in its scratch directory goes away, and nothing else does."""

import os
from pathlib import Path

import pytest

from server.errors import EvaluatorError
from server.sandbox import scratch


def test_scratch_directory_is_private_and_cannot_be_guessed(tmp_path: Path) -> None:
    one, two = (scratch.make(tmp_path, "slot0", None, None) for _ in range(2))
    assert Path(one).stat().st_mode & 0o777 == 0o700
    assert one != two


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    top = Path(scratch.make(tmp_path, "slot0", None, None))
    (top / "directory").symlink_to(outside)
    (top / "file").symlink_to(outside / "kept")
    assert scratch.remove(str(top), deadline_s=5.0)
    assert not top.exists()
    assert (outside / "kept").exists()


def test_link_in_place_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    (tmp_path / "top").symlink_to(tmp_path / "outside")
    assert not scratch.remove(str(tmp_path / "top"), deadline_s=5.0)
    assert (tmp_path / "outside" / "kept").exists()


def test_deeper_tree_than_the_stack_is_removed(tmp_path: Path) -> None:
    top = scratch.make(tmp_path, "slot0", None, None)
    here = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert scratch.remove(top, deadline_s=20.0)
    assert not Path(top).exists()


def test_closed_directories_and_special_files_are_removed(tmp_path: Path) -> None:
    top = Path(scratch.make(tmp_path, "slot0", None, None))
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "file").touch()
    os.mkfifo(top / "fifo")
    (top / "a" / "b").chmod(0)
    (top / "a").chmod(0)
    assert scratch.remove(str(top), deadline_s=5.0)
    assert not top.exists()


def test_removal_stops_at_its_deadline_and_can_be_continued(tmp_path: Path) -> None:
    top = Path(scratch.make(tmp_path, "slot0", None, None))
    for number in range(10):
        (top / str(number)).touch()
    assert not scratch.remove(str(top), deadline_s=-1.0)
    assert scratch.remove(str(top), deadline_s=5.0)


def test_directory_that_is_gone_counts_as_removed(tmp_path: Path) -> None:
    assert scratch.remove(str(tmp_path / "none"), deadline_s=1.0)


def test_root_that_candidates_cannot_reach_is_refused(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(EvaluatorError, match="cannot reach"):
        scratch.prepare_root(closed / "slots", for_other_users=True)


def test_root_where_nothing_can_be_executed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker mounts a tmpfs that way unless told otherwise."""
    plain = os.statvfs(tmp_path)

    class NoExec:
        f_flag = plain.f_flag | os.ST_NOEXEC

    monkeypatch.setattr(os, "statvfs", lambda _: NoExec)
    with pytest.raises(EvaluatorError, match="noexec"):
        scratch.prepare_root(tmp_path / "slots", for_other_users=False)
