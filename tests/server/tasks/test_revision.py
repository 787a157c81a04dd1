"""The commit of a checkout, read without git."""

from pathlib import Path

from server.tasks.revision import revision_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def checkout(folder: Path, head: str) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head)
    return folder


def test_detached_head_is_its_commit(tmp_path: Path) -> None:
    assert revision_of(checkout(tmp_path, f"{COMMIT}\n")) == COMMIT


def test_loose_ref_is_followed(tmp_path: Path) -> None:
    checkout(tmp_path, "ref: refs/heads/main\n")
    (tmp_path / ".git/refs/heads").mkdir(parents=True)
    (tmp_path / ".git/refs/heads/main").write_text(f"{COMMIT}\n")
    assert revision_of(tmp_path) == COMMIT


def test_packed_ref_is_found(tmp_path: Path) -> None:
    checkout(tmp_path, "ref: refs/heads/main\n")
    (tmp_path / ".git/packed-refs").write_text(f"# pack-refs\n{'f' * 40} refs/heads/other\n{COMMIT} refs/heads/main\n")
    assert revision_of(tmp_path) == COMMIT


def test_work_tree_uses_the_refs_of_its_repository(tmp_path: Path) -> None:
    main = checkout(tmp_path / "main", "ref: refs/heads/main\n")
    state = main / ".git/worktrees/tree"
    state.mkdir(parents=True)
    (state / "HEAD").write_text("ref: refs/heads/side\n")
    (state / "commondir").write_text("../..\n")
    (main / ".git/refs/heads").mkdir(parents=True)
    (main / ".git/refs/heads/side").write_text(COMMIT)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/.git").write_text(f"gitdir: {state}\n")
    assert revision_of(tmp_path / "tree") == COMMIT


def test_folder_without_git_has_no_revision(tmp_path: Path) -> None:
    assert revision_of(tmp_path) is None


def test_damaged_checkout_has_no_revision(tmp_path: Path) -> None:
    checkout(tmp_path, "ref: refs/heads/gone\n")
    assert revision_of(tmp_path) is None
