"""Reads task files out of a tar or zip archive, in memory: nothing of it is written to disk. Trusted side.

Covered: more members or bytes than a checkout has, compression bombs, links, devices, absolute paths, paths with `..`,
one name twice, encryption. Not covered: what the tasks say; they are as trusted as those of a folder.
"""

import gzip
import io
import re
import stat
import tarfile
import zipfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from ..errors import InvalidRequest
from .listing import MAX_TASK_BYTES, Tree

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".zip")
MAX_MEMBERS = 20_000
"""KernelBench's repository has 358 files; with its git objects, if a clone was packed, a few thousand."""

MAX_UNPACKED_BYTES = 512 << 20
MAX_KEPT_BYTES = 64 << 20
"""Python files together; KernelBench's have 3 MB."""

_COMMIT = re.compile(r"[0-9a-f]{40}")


def is_archive(path: Path) -> bool:
    """Whether the name is that of an archive this module reads."""
    return path.name.lower().endswith(SUFFIXES)


def read_archive(path: Path) -> Tree:
    """Python files of the archive, with the commit that `git archive` noted in it.

    Raises:
        InvalidRequest: It cannot be read, is beyond a limit, or holds something that no checkout holds.
    """
    try:
        if path.stat().st_size > MAX_UNPACKED_BYTES:
            raise InvalidRequest(f"{path.name}: refused, more than {MAX_UNPACKED_BYTES} bytes")
        return _read_zip(path) if path.name.lower().endswith(".zip") else _read_tar(path)
    except InvalidRequest:
        raise
    except (OSError, EOFError, ValueError, RecursionError, NotImplementedError, RuntimeError) as error:
        raise InvalidRequest(f"{path.name}: cannot be read as an archive") from error
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidRequest(f"{path.name}: cannot be read as an archive") from error


class _Kept:
    """Files taken over so far, and the checks every member must pass."""

    def __init__(self, archive_name: str) -> None:
        self.files: dict[str, bytes] = {}
        self._archive = archive_name
        self._members = 0
        self._bytes = 0

    def admit(self, name: str, size: int, *, is_file: bool, is_folder: bool) -> str | None:
        """Path under which a member is to be kept; None when it is of no interest.

        Raises:
            InvalidRequest: It must not be in an archive of tasks, or a limit is reached.
        """
        self._members += 1
        if self._members > MAX_MEMBERS:
            self._refuse(f"more than {MAX_MEMBERS} members")
        parts = [part for part in name.split("/") if part not in {"", "."}]
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in parts:
            self._refuse(f"a member lies outside it: {name[:80]!r}")
        if is_folder:
            return None
        if not is_file:
            self._refuse(f"a member is a link or a device: {name[:80]!r}")
        if not parts or not parts[-1].endswith(".py"):
            return None
        kept = "/".join(parts)
        if kept in self.files:
            self._refuse(f"a member exists twice: {kept[:80]!r}")
        if size > MAX_TASK_BYTES:
            self._refuse(f"{kept[:80]!r} has more than {MAX_TASK_BYTES} bytes")
        self._bytes += size
        if self._bytes > MAX_KEPT_BYTES:
            self._refuse(f"its Python files have more than {MAX_KEPT_BYTES} bytes together")
        return kept

    def _refuse(self, reason: str) -> None:
        raise InvalidRequest(f"{self._archive}: refused, {reason}")


class _Bounded(io.RawIOBase):
    """The first bytes of a stream; beyond them reading fails. So much and no more is ever decompressed."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, archive_name: str) -> None:
        super().__init__()
        self._file = file
        self._left = MAX_UNPACKED_BYTES
        self._archive = archive_name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer)
        chunk = self._file.read(len(view))
        self._left -= len(chunk)
        if self._left < 0:
            raise InvalidRequest(f"{self._archive}: refused, more than {MAX_UNPACKED_BYTES} bytes unpacked")
        view[: len(chunk)] = chunk
        return len(chunk)


def _read_tar(path: Path) -> Tree:
    kept = _Kept(path.name)
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        is_packed = path.name.lower().endswith("gz")
        packed = stack.enter_context(gzip.GzipFile(fileobj=file)) if is_packed else file
        # Read as a stream, front to back: the only way of tarfile's that never seeks over more than it was given.
        archive = stack.enter_context(tarfile.open(fileobj=_Bounded(packed, path.name), mode="r|"))
        for member in archive:
            is_file = member.isreg() and not member.issparse()
            name = kept.admit(member.name, member.size, is_file=is_file, is_folder=member.isdir())
            content = archive.extractfile(member) if name is not None else None
            if name is not None and content is not None:
                kept.files[name] = content.read()
        comment = archive.pax_headers.get("comment", "")
    return Tree(path.name, kept.files, _commit(comment))


def _read_zip(path: Path) -> Tree:
    kept = _Kept(path.name)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            is_file = kind in {0, stat.S_IFREG}
            name = kept.admit(member.filename, member.file_size, is_file=is_file, is_folder=member.is_dir())
            if name is not None:
                with archive.open(member) as content:
                    kept.files[name] = content.read(MAX_TASK_BYTES + 1)
        comment = archive.comment.decode("ascii", "replace")
    return Tree(path.name, kept.files, _commit(comment))


def _commit(comment: str) -> str | None:
    return comment if _COMMIT.fullmatch(comment) else None
