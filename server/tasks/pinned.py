"""The revision of KernelBench that published numbers refer to, and whether files are those of that revision.

Trusted side. `kernelbench.json` holds SHA-256 of each file below `level1/` to `level4/`; the files themselves are
KernelBench's and not part of this package.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PINNED_REVISION = "423217d9fda91e0c2d67e4a43bf62f96f6d104f1"
"""KernelBench revision whose tasks the documentation and the published numbers refer to."""

_HASHES_FILE = Path(__file__).parent / "kernelbench.json"


@dataclass(frozen=True, slots=True)
class Pin:
    """What a checkout has to be."""

    revision: str
    hashes: Mapping[str, str]
    """SHA-256 in hexadecimal, by path below the folder of the levels: `level1/19_ReLU.py`."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Files that are not as pinned, by path."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.missing)

    def __str__(self) -> str:
        return f"changed={len(self.changed)} added={len(self.added)} missing={len(self.missing)}"


@cache
def kernelbench() -> Pin:
    """The pinned revision."""
    stored = json.loads(_HASHES_FILE.read_text(encoding="ascii"))
    return Pin(stored["revision"], stored["sha256"])


def difference(files: Mapping[str, bytes], pin: Pin) -> Difference:
    """How `files`, by path in KernelBench's layout, differ from the pinned ones, over the levels that are there."""
    levels = {path.partition("/")[0] for path in files}
    return Difference(
        changed=tuple(sorted(path for path in files if path in pin.hashes and sha256(files[path]) != pin.hashes[path])),
        added=tuple(sorted(path for path in files if path not in pin.hashes)),
        missing=tuple(sorted(path for path in pin.hashes if path not in files and path.partition("/")[0] in levels)),
    )


def sha256(data: bytes) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
