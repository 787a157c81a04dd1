"""Task files out of archives: what is taken, and what is refused."""

import gzip
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from server.errors import InvalidRequest
from server.tasks import archive
from server.tasks.archive import is_archive, read_archive
from server.tasks.registry import load_tasks

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
FILES = {
    "KernelBench/level1/19_Own.py": TASK,
    "KernelBench/level2/3_Own.py": TASK,
    "KernelBench/level4/1_own.py": TASK,
    "src/tool.py": "print('no task')\n",
    "README.md": "Text.\n",
}


def pack(path: Path, files: dict[str, str], prefix: str = "") -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in files.items():
                packed.writestr(prefix + name, text)
        return path
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive_:
        for name, text in files.items():
            add(archive_, tarfile.TarInfo(prefix + name), text.encode())
    return path


def add(archive_: tarfile.TarFile, member: tarfile.TarInfo, data: bytes = b"") -> None:
    member.size = len(data)
    archive_.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("name", ["kb.tar", "kb.tar.gz", "kb.tgz", "kb.zip", "KB.ZIP"])
@pytest.mark.parametrize("prefix", ["", "./", "KernelBench-main/", "KernelBench/"])
def test_every_format_gives_the_tasks_of_the_checkout(tmp_path: Path, name: str, prefix: str) -> None:
    tasks = load_tasks(str(pack(tmp_path / name.lower(), FILES, prefix).rename(tmp_path / name)))
    assert [task.task_id for task in tasks if task.origin == name] == ["level1/19_Own", "level2/3_Own"]
    assert tasks.get("level2/3_Own").level == 2
    assert [skipped.task_id for skipped in tasks.skipped] == ["level4/1_own"]


@pytest.mark.parametrize("name", ["own.tar.gz", "own.zip"])
@pytest.mark.parametrize("prefix", ["", "some_folder/"])
def test_archive_of_a_plain_folder_uses_file_stems(tmp_path: Path, name: str, prefix: str) -> None:
    files = {"first.py": TASK, "second.py": TASK, "_draft.py": "(", "._first.py": "\0"}
    tasks = load_tasks(str(pack(tmp_path / name, files, prefix)))
    assert [task.task_id for task in tasks if task.origin == name] == ["first", "second"]


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
def test_commit_noted_by_git_is_the_revision(tmp_path: Path, kind: str) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@x"]
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1/1_Own.py").write_text(TASK)
    for command in (["init", "-q"], ["add", "level1"], ["commit", "-q", "-m", "m"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    packed = tmp_path / f"kb.{kind}"
    subprocess.run([*git, "archive", "-o", str(packed), "HEAD"], check=True)
    tasks = load_tasks(str(packed))
    assert tasks.revision == commit
    assert tasks.get("level1/1_Own").origin == f"kb.{kind}@{commit[:12]}"


def test_nothing_is_written_beside_the_archive(tmp_path: Path) -> None:
    load_tasks(str(pack(tmp_path / "kb.tar.gz", FILES)))
    load_tasks(str(pack(tmp_path / "kb.zip", FILES)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kb.tar.gz", "kb.zip"]


@pytest.mark.parametrize("escape", ["../level1/1_Own.py", "/level1/1_Own.py", "level1/../../1_Own.py", "a\\..\\b.py"])
@pytest.mark.parametrize("name", ["kb.tar", "kb.zip"])
def test_member_outside_the_archive_is_refused(tmp_path: Path, name: str, escape: str) -> None:
    with pytest.raises(InvalidRequest, match=r"kb\.(tar|zip): refused, a member lies outside"):
        read_archive(pack(tmp_path / name, {**FILES, escape: TASK}))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
@pytest.mark.parametrize("member_name", ["level1/2_Link.py", "notes"])
def test_link_or_device_in_a_tar_is_refused(tmp_path: Path, kind: bytes, member_name: str) -> None:
    with tarfile.open(tmp_path / "kb.tar", "w") as packed:
        add(packed, tarfile.TarInfo("level1/1_Own.py"), TASK.encode())
        member = tarfile.TarInfo(member_name)
        member.type, member.linkname = kind, "level1/1_Own.py"
        packed.addfile(member)
    with pytest.raises(InvalidRequest, match="link or a device"):
        read_archive(tmp_path / "kb.tar")


def test_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "kb.zip", "w") as packed:
        member = zipfile.ZipInfo("level1/1_Own.py")
        member.external_attr = 0o120777 << 16
        packed.writestr(member, "/etc/passwd")
    with pytest.raises(InvalidRequest, match="link or a device"):
        read_archive(tmp_path / "kb.zip")


def test_one_name_twice_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "kb.tar", "w") as packed:
        add(packed, tarfile.TarInfo("level1/1_Own.py"), TASK.encode())
        add(packed, tarfile.TarInfo("./level1//1_Own.py"), b"other")
    with pytest.raises(InvalidRequest, match="exists twice"):
        read_archive(tmp_path / "kb.tar")


@pytest.mark.parametrize("name", ["kb.tar.gz", "kb.zip"])
@pytest.mark.parametrize(
    ("limit", "value", "says"),
    [
        ("MAX_MEMBERS", 4, "more than 4 members"),
        ("MAX_TASK_BYTES", 100, "more than 100 bytes"),
        ("MAX_KEPT_BYTES", 400, "more than 400 bytes together"),
    ],
)
def test_archive_beyond_a_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: str, value: int, says: str
) -> None:
    packed = pack(tmp_path / name, FILES)
    assert len(read_archive(packed).files) == 4
    monkeypatch.setattr(archive, limit, value)
    with pytest.raises(InvalidRequest, match=says):
        read_archive(packed)


def test_compression_bomb_is_read_up_to_the_limit_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that is not kept still has to be unpacked to reach the next one."""
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 1 << 20)
    with tarfile.open(tmp_path / "bomb.tar.gz", "w:gz") as packed:
        add(packed, tarfile.TarInfo("zeros.bin"), bytes(8 << 20))
        add(packed, tarfile.TarInfo("level1/1_Own.py"), TASK.encode())
    assert (tmp_path / "bomb.tar.gz").stat().st_size < 1 << 20
    with pytest.raises(InvalidRequest, match="1048576 bytes unpacked"):
        read_archive(tmp_path / "bomb.tar.gz")


@pytest.mark.parametrize("name", ["kb.tar", "kb.tar.gz", "kb.zip"])
def test_damaged_archive_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    whole = pack(tmp_path / name, FILES).read_bytes()
    in_a_member = 800 if name == "kb.tar" else len(whole) // 2
    for damaged in (b"", b"no archive", whole[:in_a_member]):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(InvalidRequest, match=rf"^{name}: cannot be read as an archive"):
            read_archive(tmp_path / name)


def test_damaged_compression_is_refused(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(bytes(range(256)) * 40))
    data[40:60] = bytes(20)
    (tmp_path / "kb.tgz").write_bytes(data)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_archive(tmp_path / "kb.tgz")


@pytest.mark.parametrize(("name", "expected"), [("a.tar", True), ("a.TGZ", True), ("a.tar.xz", False), ("tar", False)])
def test_archives_are_known_by_their_names(name: str, expected: bool) -> None:
    assert is_archive(Path(name)) is expected
