"""The table of built-in tasks in docs/tasks.md is what the files say."""

import ast
from pathlib import Path

from server.tasks.registry import load_tasks

PAGE = Path(__file__).parents[1] / "docs" / "tasks.md"


def test_table_of_built_in_tasks_is_true() -> None:
    rows = []
    for task in load_tasks():
        title = (ast.get_docstring(ast.parse(task.source)) or "").partition("\n")[0].rstrip(".")
        sizes = len(task.at_sizes("cuda"))
        rows.append(f"| `{task.task_id}` | {task.level} | `{task.precision}` | {sizes} | {task.split} | {title} |")
    table = PAGE.read_text(encoding="utf-8").partition("<!-- begin built-in -->")[2].partition("<!-- end")[0]
    assert table.strip().splitlines()[2:] == rows
