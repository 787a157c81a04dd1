"""What of a reply is the submission, and in which language. Trusted side; looks at text only and never raises.

A reply may be a bare module or prose with fenced blocks. Whether the text found is a usable module is decided by the
static stage.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernel_env.terms import Language

_FENCE = re.compile(r"( {0,12})(`{3,}|~{3,})[ \t]*([^`\n]*)")
_PYTHON_LABELS = frozenset({"", "python", "python3", "py", "triton"})
_CODE_LINE = re.compile(
    r"(import [\w.]+( as \w+)?|from [\w.]+ import .+|class \w+\b.*:|def \w+\(.*|@[\w.]+\b.*)\s*(#.*)?"
)

_TRITON = re.compile(r"^[ \t]*(import|from)[ \t]+triton\b|@triton\.", re.MULTILINE)
_CUDA = re.compile(r"__global__|\bcuda_sources\b|<<<")
_CPP = re.compile(r"\bcpp_sources\b|\bkernel_env\b|\bload_inline\b|extern[ \t]+\"C\"")
_MARKS = ((Language.TRITON, _TRITON), (Language.CUDA, _CUDA), (Language.CPP, _CPP))


@dataclass(frozen=True, slots=True)
class _Block:
    """One fenced block."""

    label: str
    text: str


def extract(code: str) -> str:
    """The module in a reply: byte order mark and carriage returns removed, fences taken off.

    Of several blocks the last one that is labelled as Python (or not at all) is taken, those that mention `ModelNew`
    first. A reply whose text begins with code before any fence is taken whole: its fences belong to a docstring. An
    unclosed fence reaches to the end.
    """
    text = code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if _FENCE.fullmatch(line)), None)
    if first is None or any(_CODE_LINE.fullmatch(line) for line in lines[:first]):
        return text
    blocks = [block for block in _blocks(lines) if block.text.strip()]
    python = [block for block in blocks if block.label in _PYTHON_LABELS] or blocks
    chosen = [block for block in python if "ModelNew" in block.text] or python
    return chosen[-1].text if chosen else text


def detect_language(code: str, offered: Sequence[Language], default: Language) -> Language:
    """Language a module is written in, as its text shows it; `default` when it shows none, or several on offer."""
    found = [language for language, mark in _MARKS if language in offered and mark.search(code)]
    if len(found) == 1:
        return found[0]
    return default


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    opening: re.Match[str] | None = None
    body: list[str] = []
    for line in lines:
        fence = _FENCE.fullmatch(line)
        if opening is None:
            if fence is not None:
                opening, body = fence, []
        elif fence is not None and _closes(fence, opening):
            yield _block(opening, body)
            opening = None
        else:
            body.append(line)
    if opening is not None:
        yield _block(opening, body)


def _closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    """A closing fence repeats the opening one, at least as long, no deeper, and without a label."""
    same = fence[2][0] == opening[2][0] and len(fence[2]) >= len(opening[2])
    return same and not fence[3].strip() and len(fence[1]) <= len(opening[1]) + 3


def _block(opening: re.Match[str], body: Sequence[str]) -> _Block:
    indent = opening[1]
    label = (opening[3].split() or [""])[0].lower().strip("{}.")
    return _Block(label, "\n".join(line.removeprefix(indent) for line in body) + "\n")
