"""Reads one task file: what it must define, its sizes for the GPU and for the CPU. Trusted side; parses, never runs.

A task file is in KernelBench's format: `class Model`, `get_inputs()`, `get_init_inputs()`, constants at module level.
More constants may stand there, none of them part of the text an agent sees:

    CPU_SIZES = {"batch_size": 256}     values that replace constants of the same name on the CPU device
    MORE_SIZES = [{"batch_size": 100}]  further sizes at which a submission is judged, on a GPU
    MORE_CPU_SIZES = [...]              the same on the CPU device, each on top of CPU_SIZES
    PRECISION = "ieee"                  contract, where the rule of `contract.py` would choose another

The judge reads three more, `FLOPS`, `BYTES` and `STRUCTURED_INPUTS`, which stay in the text; see `judge.reference`.

Header comments, `# level:` and `# precision:`, say the same as a folder and `PRECISION`; see `header.py`.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernel_env.terms import Precision

from ..errors import InvalidRequest
from .contract import PRECISION_NAME, precision_of
from .header import Header, read_header

CPU_SIZES_NAME = "CPU_SIZES"
MORE_SIZES_NAME = "MORE_SIZES"
MORE_CPU_SIZES_NAME = "MORE_CPU_SIZES"
MOST_SIZES = 8
"""A submission is judged at each of them, in a process of its own."""


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What a task file holds, every size spelled out."""

    source: str
    cpu_source: str | None
    precision: Precision
    more_sources: tuple[str, ...] = ()
    more_cpu_sources: tuple[str, ...] = ()
    varying: tuple[str, ...] = ()
    """Constants that differ between the sizes."""

    level: int | None = None
    """As the header states it."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """Bytes `start:end` of the source, and what replaces them."""

    start: int
    end: int
    text: bytes


def read_task_file(path: Path) -> TaskFile:
    """Parse and check one file.

    Raises:
        InvalidRequest: It cannot be read, is no Python, or lacks a part of the format; names the file and the part.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path.name}: cannot be read as UTF-8 text") from error
    return parse_task(decode(data, path.name), path.name)


def decode(data: bytes, file_name: str) -> str:
    """Text of a task file: UTF-8, without byte order mark, lines that end with a line feed.

    Raises:
        InvalidRequest: It is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{file_name}: cannot be read as UTF-8 text") from error


def parse_task(text: str, file_name: str) -> TaskFile:
    """`read_task_file` on text that is already in memory.

    Raises:
        InvalidRequest: As `read_task_file`.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        detail = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else "it cannot be parsed"
        raise InvalidRequest(f"{file_name}: not Python, {detail}") from error
    _require_format(tree, file_name)
    header = read_header(text)
    if header.problems:
        raise InvalidRequest(f"{file_name}: line {header.problems[0].line}: {header.problems[0].text}")
    positions = _Positions(text)
    names = (CPU_SIZES_NAME, MORE_SIZES_NAME, MORE_CPU_SIZES_NAME, PRECISION_NAME)
    found = [statement for name in names if (statement := _assignment(tree, name)) is not None]
    removals = [positions.whole_lines(statement) for statement in found]
    removals += [positions.line(number) for number in header.lines]

    def at(sizes: dict[str, object], name: str) -> str:
        resized = [_resize(tree, positions, constant, value, name, file_name) for constant, value in sizes.items()]
        return _tidy(positions.apply([*removals, *resized]))

    cpu_sizes = _cpu_sizes(tree, file_name)
    more, more_cpu = (_more_sizes(tree, name, file_name) for name in (MORE_SIZES_NAME, MORE_CPU_SIZES_NAME))
    if more_cpu and not cpu_sizes:
        raise InvalidRequest(f"{file_name}: {MORE_CPU_SIZES_NAME} needs {CPU_SIZES_NAME}")
    return TaskFile(
        source=at({}, ""),
        cpu_source=at(cpu_sizes, CPU_SIZES_NAME) if cpu_sizes else None,
        precision=_precision(tree, header, file_name),
        more_sources=tuple(at(sizes, MORE_SIZES_NAME) for sizes in more),
        more_cpu_sources=tuple(at({**cpu_sizes, **sizes}, MORE_CPU_SIZES_NAME) for sizes in more_cpu),
        varying=tuple(dict.fromkeys(name for sizes in (*more, *more_cpu) for name in sizes)),
        level=header.level,
    )


def _precision(tree: ast.Module, header: Header, file_name: str) -> Precision:
    """Contract by the header, else by the module; `PRECISION` must not say something else than the header."""
    derived = precision_of(tree, file_name)
    if header.precision is None:
        return derived
    if _assignment(tree, PRECISION_NAME) is not None and derived is not header.precision:
        raise InvalidRequest(
            f"{file_name}: the header says precision {header.precision.value}, {PRECISION_NAME} says {derived.value}"
        )
    return header.precision


def _require_format(tree: ast.Module, file_name: str) -> None:
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "Model" not in classes:
        raise InvalidRequest(f"{file_name}: a task file must define class Model at module level")
    methods = {node.name for node in classes["Model"].body if isinstance(node, ast.FunctionDef)}
    if "forward" not in methods:
        raise InvalidRequest(f"{file_name}: class Model must define forward()")
    for name in ("get_inputs", "get_init_inputs"):
        if name not in functions:
            raise InvalidRequest(f"{file_name}: a task file must define {name}() at module level")


def _assignment(tree: ast.Module, name: str) -> ast.Assign | None:
    """The one top-level `name = value`, or None when there is none or more than one."""
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    ]
    return found[0] if len(found) == 1 and len(found[0].targets) == 1 else None


def _cpu_sizes(tree: ast.Module, file_name: str) -> dict[str, object]:
    value = _literal(tree, CPU_SIZES_NAME, "dict", file_name)
    return {} if value is None else _sizes(value, CPU_SIZES_NAME, file_name)


def _more_sizes(tree: ast.Module, name: str, file_name: str) -> list[dict[str, object]]:
    value = _literal(tree, name, "list of dicts", file_name)
    if value is None:
        return []
    if not isinstance(value, list) or not 1 <= len(value) < MOST_SIZES:
        raise InvalidRequest(f"{file_name}: {name} must be a list of 1 to {MOST_SIZES - 1} dicts")
    return [_sizes(sizes, name, file_name) for sizes in value]


def _literal(tree: ast.Module, name: str, form: str, file_name: str) -> object:
    """Value of a constant that is spelled out; None if it is not there."""
    statement = _assignment(tree, name)
    if statement is None:
        return None
    try:
        value: object = ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError) as error:
        raise InvalidRequest(f"{file_name}: {name} must be a literal {form}") from error
    return value


def _sizes(value: object, name: str, file_name: str) -> dict[str, object]:
    if not isinstance(value, dict) or not value or not all(isinstance(constant, str) for constant in value):
        raise InvalidRequest(f"{file_name}: {name} must map names of constants to values")
    return value


def _resize(
    tree: ast.Module, positions: "_Positions", constant: str, value: object, name: str, file_name: str
) -> _Edit:
    statement = _assignment(tree, constant)
    if statement is None:
        raise InvalidRequest(f"{file_name}: {name} names {constant}, which no single top-level assignment defines")
    return positions.replace(statement.value, repr(value))


class _Positions:
    """Turns AST positions (line, byte column) into byte offsets, and edits the text there."""

    def __init__(self, text: str) -> None:
        self._text = text.encode("utf-8")
        self._line_starts = [0]
        for line in self._text.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))

    def replace(self, node: ast.expr, text: str) -> _Edit:
        """An edit that puts `text` in place of `node`."""
        assert node.end_lineno is not None  # ast.parse sets both on every expression
        assert node.end_col_offset is not None
        start = self._line_starts[node.lineno - 1] + node.col_offset
        end = self._line_starts[node.end_lineno - 1] + node.end_col_offset
        return _Edit(start, end, text.encode("utf-8"))

    def whole_lines(self, node: ast.stmt) -> _Edit:
        """An edit that removes every line `node` stands on."""
        assert node.end_lineno is not None  # set by ast.parse on every statement
        return _Edit(self._line_starts[node.lineno - 1], self._line_starts[node.end_lineno], b"")

    def line(self, number: int) -> _Edit:
        """An edit that removes one line, counted from 1."""
        return _Edit(self._line_starts[number - 1], self._line_starts[number], b"")

    def apply(self, edits: Iterable[_Edit]) -> str:
        """The text with all `edits` made; they do not overlap."""
        text = self._text
        for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text.decode("utf-8")


def _tidy(text: str) -> str:
    """`text` with at most two blank lines in a row outside strings of the format, and one newline at its end."""
    while "\n\n\n\n" in text:
        text = text.replace("\n\n\n\n", "\n\n\n")
    return text.strip("\n") + "\n"
