"""Header comments of a task file."""

import pytest

from kernel_env.terms import Precision
from server.errors import InvalidRequest
from server.tasks.header import read_header
from server.tasks.reader import parse_task

BODY = '''"""Adds one."""
import torch
import torch.nn as nn

# level: 3
class Model(nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
'''


def test_settings_are_read_and_are_no_part_of_what_an_agent_sees() -> None:
    read = parse_task(f"# A task.\n# level: 2\n\n#precision:tf32\n{BODY}", "add.py")
    assert (read.level, read.precision) == (2, Precision.TF32)
    assert read.source == f"# A task.\n\n{BODY}"


def test_comment_below_the_first_code_is_no_header() -> None:
    assert read_header(BODY).level is None
    assert parse_task(BODY, "add.py").source == BODY


def test_other_comments_are_ignored() -> None:
    header = read_header(f"# task_id: relu\n# origin: builtin\n# Source: a book\n# levels matter\n{BODY}")
    assert (header.level, header.precision, header.lines, header.problems) == (None, None, (), ())


def test_lone_carriage_return_ends_a_line() -> None:
    assert read_header("# one\r# level: 2\n").lines == (2,)
    assert parse_task(f"# one\r# level: 2\n{BODY}", "add.py").source == f"# one\r{BODY}"


@pytest.mark.parametrize(
    ("header", "line", "says"),
    [
        ("# level: 0", 1, "1 \\(one operator\\), 2 \\(fused\\) or 3 \\(network\\), not '0'"),
        ("# level: two", 1, "not 'two'"),
        ("# level:", 1, "not ''"),
        ("# level: 4", 1, "whole pretrained models, not kernels"),
        ("\n# precision: fp8", 2, "ieee, tf32, lowp, not 'fp8'"),
        ("# level: 1\n# level: 1", 2, "twice"),
    ],
)
def test_value_that_cannot_be_used_is_refused_with_its_line(header: str, line: int, says: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^add\.py: line {line}: .*{says}"):
        parse_task(f"{header}\n{BODY}", "add.py")


def test_header_and_constant_must_agree() -> None:
    assert parse_task(f"# precision: lowp\n{BODY}PRECISION = 'lowp'\n", "add.py").precision is Precision.LOWP
    with pytest.raises(InvalidRequest, match=r"header says precision lowp, PRECISION says tf32"):
        parse_task(f"# precision: lowp\n{BODY}PRECISION = 'tf32'\n", "add.py")


def test_header_wins_over_the_rule() -> None:
    assert parse_task(f"# precision: ieee\n{BODY}y = torch.matmul\n", "add.py").precision is Precision.IEEE
