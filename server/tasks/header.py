"""Header comments of a task file: `# level: 2` and `# precision: tf32`, above the first line of code. Reads text only.

They are what `kernel-env tasks show` prints above a task, so that its output is a task file again. Other comments of
that form are ignored. A level in the header counts where no folder states one, and must agree with a folder that does.
"""

import re
from dataclasses import dataclass

from kernel_env.terms import Precision

LEVELS = (1, 2, 3)
MODEL_LEVEL = 4
MODEL_LEVEL_REASON = (
    "level 4 holds whole pretrained models, not kernels; constructing one downloads it from a hub, and a judge has no "
    "network"
)

_LINE_END = re.compile(r"\r\n|\r|\n")
"""What ends a line of Python; str.splitlines knows more."""

_COMMENT = re.compile(r"#+\s*([A-Za-z_]+)\s*:\s*(.*?)\s*")


@dataclass(frozen=True, slots=True)
class HeaderProblem:
    """A header comment that cannot be used."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """What the header of a file says."""

    level: int | None = None
    precision: Precision | None = None
    lines: tuple[int, ...] = ()
    """Lines of the settings, from 1; they are no part of the text an agent sees."""

    problems: tuple[HeaderProblem, ...] = ()


def read_header(text: str) -> Header:
    """Header of the module `text`. Bad values are among the problems, nothing is raised."""
    level: int | None = None
    precision: Precision | None = None
    lines: list[int] = []
    problems: list[HeaderProblem] = []
    seen: set[str] = set()
    for line, name, value in header_comments(text):
        if name not in {"level", "precision"}:
            continue
        lines.append(line)
        if name in seen:
            problems.append(HeaderProblem(line, f"'# {name}:' stands twice in the header"))
        seen.add(name)
        if name == "level":
            level = int(value) if value in {str(known) for known in LEVELS} else None
            if level is None:
                problems.append(HeaderProblem(line, _level_problem(value)))
        else:
            precision = Precision(value) if value in set(Precision) else None
            if precision is None:
                allowed = ", ".join(member.value for member in Precision)
                problems.append(HeaderProblem(line, f"'# precision:' must be one of {allowed}, not {value[:40]!r}"))
    return Header(level, precision, tuple(lines), tuple(problems))


def header_comments(text: str) -> list[tuple[int, str, str]]:
    """Line number, name and value of each `# name: value` above the first line that is neither comment nor blank."""
    found = []
    for number, line in enumerate(_LINE_END.split(text), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            break
        match = _COMMENT.fullmatch(stripped)
        if match:
            found.append((number, match[1], match[2]))
    return found


def _level_problem(value: str) -> str:
    if value == str(MODEL_LEVEL):
        return MODEL_LEVEL_REASON
    return f"'# level:' must be 1 (one operator), 2 (fused) or 3 (network), not {value[:40]!r}"
