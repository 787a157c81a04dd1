"""Reads task files of a folder, or a single one, into memory. Trusted side; runs nothing."""

from pathlib import Path

from ..errors import InvalidRequest
from .listing import INNER_FOLDER, MAX_TASK_BYTES, Tree, level_of
from .revision import revision_of


def read_folder(folder: Path) -> Tree:
    """Python files of `folder` that may be tasks: at its top, or in `level*` folders there or in `KernelBench/`.

    A folder that is itself called `level1` is read as a checkout of that level alone, so that its tasks have the ids,
    and with them the input roles, that they have in the checkout.

    Raises:
        InvalidRequest: A file is too large or cannot be read.
    """
    name = folder.resolve().name
    if level_of(name) is not None:
        files = {f"{name}/{path.name}": read_bytes(path) for path in _python_files(folder)}
        return Tree(name, files, _revision(folder, 2))
    found = [*_python_files(folder)]
    for root in (folder, folder / INNER_FOLDER):
        if root.is_dir():
            levels = [path for path in root.iterdir() if path.is_dir() and level_of(path.name) is not None]
            found += [path for level in levels for path in _python_files(level)]
    files = {path.relative_to(folder).as_posix(): read_bytes(path) for path in found}
    return Tree(name, files, _revision(folder, 1 if any(level_of(path.parent.name) for path in found) else 0))


def read_single(path: Path) -> Tree:
    """One task file. In a `level*` folder it has the id it has in the checkout.

    Raises:
        InvalidRequest: As `read_folder`.
    """
    folder = path.resolve().parent
    if level_of(folder.name) is None:
        return Tree(path.name, {path.name: read_bytes(path)})
    files = {f"{folder.name}/{path.name}": read_bytes(path)}
    return Tree(path.name, files, _revision(folder, 2), is_whole=False)


def read_bytes(path: Path) -> bytes:
    """Content of a task file.

    Raises:
        InvalidRequest: It is larger than a task file may be, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TASK_BYTES + 1)
    except OSError as error:
        raise InvalidRequest(f"{path.name}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_TASK_BYTES:
        raise InvalidRequest(f"{path.name}: a task file has at most {MAX_TASK_BYTES} bytes")
    return data


def _python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if path.is_file() and path.name[0] not in "_.")


def _revision(folder: Path, above: int) -> str | None:
    """Commit of `folder`, or of one of the `above` folders it lies in."""
    resolved = folder.resolve()
    for candidate in (resolved, *resolved.parents[:above]):
        revision = revision_of(candidate)
        if revision is not None:
            return revision
    return None
