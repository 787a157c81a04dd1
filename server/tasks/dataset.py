"""Reads KernelBench as its data set is published: rows of `code, level, name, problem_id` in splits such as `level_1`.

Trusted side. The files are parquet, as downloaded from a hub; arrow, as `datasets` saves to disk; or JSON lines. The
first two need pyarrow, on which `datasets` stands, and only then is it imported; the last needs nothing. Ids are those
of a checkout, `level1/19_ReLU`. Nothing is downloaded.
"""

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidRequest
from .header import MODEL_LEVEL, MODEL_LEVEL_REASON
from .listing import MAX_TASK_BYTES, Entry, Listing, SkippedTask, sort_key

COLUMNS = ("code", "level", "name", "problem_id")
SUFFIXES = (".parquet", ".arrow", ".jsonl")
MAX_ROWS = 20_000
MAX_FILE_BYTES = 256 << 20

_INSTALL = "pip install pyarrow"
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,200}")
_SPLIT = re.compile(r"level_(\d{1,3})(?!\d)")
_ARROW_FILE_MAGIC = b"ARROW1"


def data_files(source: Path) -> list[Path]:
    """Files of a data set: `source` itself, or those at its top, in `data/` and in `level_*/`; empty if it is none."""
    if source.is_file():
        return [source] if source.name.lower().endswith(SUFFIXES) else []
    folders = [source, source / "data", *sorted(source.glob("level_*")), *sorted(source.glob("data/level_*"))]
    files = (path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir()))
    return [path for path in files if path.is_file() and path.name.lower().endswith(SUFFIXES)]


def read_dataset(source: Path) -> Listing:
    """Tasks of a data set.

    Raises:
        InvalidRequest: No library for these files, a column is missing, a row is malformed, or an id exists twice.
    """
    entries: dict[str, Entry] = {}
    rows = 0
    for path in data_files(source):
        stated = _stated_level(path, source)
        for row in _rows(path):
            rows += 1
            if rows > MAX_ROWS:
                raise InvalidRequest(f"{path.name}: a data set of tasks has at most {MAX_ROWS} rows")
            entry = _entry(row, f"{path.name}: row {rows}", stated)
            if entry.task_id in entries:
                raise InvalidRequest(f"{path.name}: row {rows}: the task {entry.task_id!r} exists twice")
            entries[entry.task_id] = entry
    ordered = sorted(entries.values(), key=sort_key)
    return Listing(
        source.resolve().name,
        tuple(entry for entry in ordered if entry.level != MODEL_LEVEL),
        tuple(SkippedTask(entry.task_id, MODEL_LEVEL_REASON) for entry in ordered if entry.level == MODEL_LEVEL),
    )


def _stated_level(path: Path, source: Path) -> int | None:
    """Level of the split a file belongs to, after its name or its folder's."""
    folder = path.parent.name if source.is_dir() and path.parent != source else ""
    for name in (path.name, folder):
        match = _SPLIT.match(name)
        if match:
            return int(match[1])
    return None


def _entry(row: Mapping[str, Any], where: str, stated: int | None) -> Entry:
    missing = [name for name in COLUMNS if row.get(name) is None]
    if missing:
        raise InvalidRequest(f"{where}: no {', '.join(missing)}; a row has {', '.join(COLUMNS)}")
    code, level, name, number = (row[column] for column in COLUMNS)
    if not isinstance(code, str) or len(code.encode("utf-8", "replace")) > MAX_TASK_BYTES:
        raise InvalidRequest(f"{where}: code must be text of at most {MAX_TASK_BYTES} bytes")
    if not _is_number(level) or not _is_number(number):
        raise InvalidRequest(f"{where}: level and problem_id must be whole numbers from 0 to 999999")
    if stated is not None and level != stated:
        raise InvalidRequest(f"{where}: level {level} in the split level_{stated}")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequest(f"{where}: name must consist of letters, digits and _ . + -")
    stem = name.removesuffix(".py")
    if not stem.startswith(f"{number}_"):
        stem = f"{number}_{stem}"
    return Entry(f"level{level}/{stem}", f"{stem}.py", code.encode("utf-8", "replace"), level)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidRequest(f"{path.name}: a file of a data set has at most {MAX_FILE_BYTES} bytes")
    if path.name.lower().endswith(".jsonl"):
        yield from _json_rows(path)
        return
    try:
        batches = _parquet_batches if path.name.lower().endswith(".parquet") else _arrow_batches
        for batch in batches(path):
            absent = [name for name in COLUMNS if name not in batch.schema.names]
            if absent:
                raise InvalidRequest(f"{path.name}: no column {', '.join(absent)}; expected {', '.join(COLUMNS)}")
            yield from batch.select(list(COLUMNS)).to_pylist()
    except ImportError as error:
        kind = path.suffix.removeprefix(".")
        raise InvalidRequest(f"{path.name}: reading {kind} files needs pyarrow: {_INSTALL}") from error
    except (OSError, ValueError, KeyError, NotImplementedError) as error:  # pyarrow's own errors are among these
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(f"{path.name}: cannot be read as a data set") from error


def _json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidRequest(f"{path.name}: line {number} is no JSON") from error
            if not isinstance(row, dict):
                raise InvalidRequest(f"{path.name}: line {number} is no JSON object")
            yield row


def _parquet_batches(path: Path) -> Iterable[Any]:
    """Record batches. Imported by name: the library is optional, and has no types."""
    file = importlib.import_module("pyarrow.parquet").ParquetFile(path)
    if file.metadata.num_rows > MAX_ROWS:
        raise InvalidRequest(f"{path.name}: a data set of tasks has at most {MAX_ROWS} rows")
    columns = [name for name in COLUMNS if name in file.schema_arrow.names]
    batches: Iterable[Any] = file.iter_batches(columns=columns) if columns else [file.schema_arrow.empty_table()]
    return batches


def _arrow_batches(path: Path) -> Iterable[Any]:
    """Record batches of both forms arrow has on disk: `datasets` writes the stream."""
    ipc = importlib.import_module("pyarrow.ipc")
    data = path.read_bytes()
    if data.startswith(_ARROW_FILE_MAGIC):
        reader = ipc.open_file(data)
        return (reader.get_batch(index) for index in range(reader.num_record_batches))
    return (batch for batch in ipc.open_stream(data))
