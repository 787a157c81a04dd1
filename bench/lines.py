"""Files with one JSON line per case, kept up to date while a program runs. Knows nothing of what the lines say."""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Lines = dict[str, dict[str, Any]]
"""Lines of a file, by the value of their key."""


def read(file: Path, key: str = "case") -> Lines:
    """What is in the file; nothing if there is none."""
    if not file.exists():
        return {}
    return {line[key]: line for line in map(json.loads, file.read_text(encoding="utf-8").splitlines())}


def store(file: Path, line: Mapping[str, Any], key: str = "case") -> None:
    """Put `line` in the place of that with the same key. Safe beside other runs, and when cut off."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with _alone(file.parent):
        lines = {**read(file, key), line[key]: dict(line)}
        text = "".join(json.dumps(lines[name]) + "\n" for name in sorted(lines))
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as new:
            new.write(text)
        Path(new.name).chmod(0o644)
        Path(new.name).replace(file)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
