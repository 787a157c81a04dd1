"""Tables, and the regions of a page that a program writes. Text only."""

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that ends with a newline."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(_cell, row)) + " |" for row in rows)]) + "\n"


def with_region(page: str, name: str, text: str) -> str:
    """`page` with `text` between the two lines that mark the region `name`.

    Raises:
        ValueError: The page does not hold each of the two lines once.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page must hold {begin.strip()!r} and {end.strip()!r} once each")
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{text}\n{end}{after}"


def _cell(text: str) -> str:
    """Text that stays in its cell."""
    return " ".join(text.replace("|", "\\|").split())
