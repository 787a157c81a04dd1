"""What is wrong with a task file, as far as its text tells. Trusted side; parses, never runs.

The loader stops at the first fault; this lists all of them, with the line and what was expected. `signatures.py` knows
about functions and their arguments.
"""

import ast
import difflib
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidRequest
from .folder import read_bytes
from .header import header_comments, read_header
from .reader import decode
from .registry import load_one
from .signatures import Fault, faults

_SETTINGS = ("level", "precision")
_SHOWN_BY_TASKS_SHOW = frozenset({"task_id", "split", "origin", *_SETTINGS})
_NEAR = 0.75
"""Likeness from which a comment counts as a misspelt setting: `presicion`, `levels`, not `language`."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing to change."""

    line: int
    """From 1; 0 where it is about the file as a whole."""

    rule: str
    """`syntax`, `header`, `model`, `forward`, `inputs`, `init_inputs`, `arity`, `settings`, `name`, or `run`."""

    message: str


def lint_file(path: Path) -> tuple[Finding, ...]:
    """Findings about a file, in the order of their lines.

    Raises:
        InvalidRequest: There is no such file, or it is far larger than a task.
    """
    data = read_bytes(path)
    found = _text_findings(data, path.name)
    if not found:
        # What is left: settings that contradict each other, name what is not there, or contradict the folder.
        try:
            load_one(str(path))
        except InvalidRequest as error:
            found = [Finding(0, "settings", _without(str(error), path.name))]
    return tuple(sorted(found))


def _text_findings(data: bytes, file_name: str) -> list[Finding]:
    try:
        text = decode(data, file_name)
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [_not_python(error, file_name)]
    found = {_of(fault) for fault in faults(tree)}
    found.update(Finding(problem.line, "header", problem.text) for problem in read_header(text).problems)
    found.update(_misspelt(text))
    if file_name[:1] in {"_", "."} or not file_name.endswith(".py"):
        found.add(Finding(0, "name", "only files called *.py, without _ or . at the start, are taken for tasks"))
    return list(found)


def _of(fault: Fault) -> Finding:
    return Finding(fault.line, fault.rule, fault.message)


def _not_python(error: BaseException, file_name: str) -> Finding:
    if isinstance(error, SyntaxError):
        return Finding(error.lineno or 0, "syntax", f"not Python: {error.msg}")
    if isinstance(error, InvalidRequest):
        return Finding(0, "syntax", _without(str(error), file_name))
    return Finding(0, "syntax", "not Python: it cannot be parsed")


def _misspelt(text: str) -> list[Finding]:
    findings = []
    for line, name, _ in header_comments(text):
        near = difflib.get_close_matches(name.lower(), _SETTINGS, n=1, cutoff=_NEAR)
        if name not in _SHOWN_BY_TASKS_SHOW and near:
            findings.append(Finding(line, "header", f"'# {name}:' has no effect; did you mean '# {near[0]}:'?"))
    return findings


def _without(message: str, file_name: str) -> str:
    """A message of the loader without the file's name, which stands before every finding."""
    return message.removeprefix(f"{file_name}: ")
