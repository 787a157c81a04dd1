"""What is said about a bad task file."""

from pathlib import Path

import pytest

from server.tasks.lint import lint_file

TASK = """# level: 1
# precision: tf32
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, size, bias=True):
        super().__init__()
        self.linear = nn.Linear(size, size, bias)

    def forward(self, x, y):
        return self.linear(x) + y

def get_inputs():
    return [torch.rand(4, 8), torch.rand(4, 8)]

def get_init_inputs():
    return [8]
"""


def lint(folder: Path, text: str | bytes, name: str = "mine.py") -> list[tuple[int, str, str]]:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [(found.line, found.rule, found.message) for found in lint_file(path)]


BUILTIN = Path(__file__).resolve().parents[3] / "server/tasks/builtin"


def test_good_file_has_no_findings(tmp_path: Path) -> None:
    assert lint(tmp_path, TASK) == []


@pytest.mark.parametrize("path", sorted(BUILTIN.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_built_in_task_under_another_name_has_no_findings(tmp_path: Path, path: Path) -> None:
    assert lint(tmp_path, path.read_text(), "own_task.py") == []


@pytest.mark.parametrize(
    ("old", "new", "line", "rule", "says"),
    [
        ("return [8]", "return [8", 18, "syntax", "not Python: '[' was never closed"),
        ("# level: 1", "# level: 9", 1, "header", "must be 1 (one operator)"),
        ("# level: 1", "# level: 4", 1, "header", "whole pretrained models, not kernels"),
        ("# precision: tf32", "# precision: fp16", 2, "header", "must be one of ieee, tf32, lowp, not 'fp16'"),
        ("# precision: tf32", "# presicion: tf32", 2, "header", "'# presicion:' has no effect; did you mean"),
        ("# level: 1", "# Level: 1", 1, "header", "did you mean '# level:'?"),
        ("class Model(", "class ModelNew(", 0, "model", "line 6 has class ModelNew"),
        ("(nn.Module)", "", 6, "model", "no base; expected class Model(nn.Module)"),
        ("def forward", "def run", 6, "forward", "no forward(self, ...)"),
        ("def forward(self, x, y)", "async def forward(self, x, y)", 11, "forward", "is async"),
        ("def forward(self, x, y)", "def forward()", 11, "forward", "takes no self"),
        ("def forward(self, x, y)", "def forward(self, x, y, *, z)", 11, "forward", "needs z"),
        ("return self.linear(x) + y", "self.linear(x)", 11, "forward", "returns nothing"),
        ("return self.linear(x) + y", "yield self.linear(x)", 11, "forward", "is a generator"),
        ("    def forward", "    @staticmethod\n    def forward", 12, "forward", "no instance method"),
        ("def get_inputs", "def inputs", 0, "inputs", "no function get_inputs() at module level"),
        ("def get_inputs()", "def get_inputs(n)", 14, "inputs", "called without arguments, and needs n"),
        ("def get_inputs()", "def get_inputs(*, n)", 14, "inputs", "called without arguments, and needs n"),
        ("def get_inputs()", "async def get_inputs()", 14, "inputs", "is async"),
        ("return [torch", "yield [torch", 14, "inputs", "is a generator; expected a list"),
        ("return [torch", "values = [torch", 14, "inputs", "returns nothing; expected a list"),
        ("return [torch.rand(4, 8), torch.rand(4, 8)]", "return torch.rand(2, 4)", 15, "inputs", "no list"),
        ("return [8]", "return 8", 18, "init_inputs", "returns no list: 'return 8'"),
        ("def get_init_inputs", "def init", 0, "init_inputs", "no function get_init_inputs()"),
        (", torch.rand(4, 8)]", "]", 15, "arity", "get_inputs returns 1 values, Model.forward takes 2 besides self"),
        ("forward(self, x, y)", "forward(self, x)", 15, "arity", "returns 2 values, Model.forward takes 1 besides"),
        ("return [8]", "return []", 18, "arity", "returns 0 values, Model.__init__ takes 1 to 2 besides self"),
        ("return [8]", "return [8, True, 0]", 18, "arity", "returns 3 values, Model.__init__ takes 1 to 2"),
    ],
)
def test_one_fault_is_one_finding_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, rule: str, says: str
) -> None:
    assert TASK.count(old) == 1
    found = lint(tmp_path, TASK.replace(old, new))
    assert [(at, name) for at, name, _ in found] == [(line, rule)]
    assert says in found[0][2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("forward(self, x, y)", "forward(self, *tensors)"),
        ("forward(self, x, y)", "forward(self, x, y, scale=1.0)"),
        ("forward(self, x, y)", "forward(self, x, /, y, *, scale=1.0)"),
        ("return [torch.rand(4, 8), torch.rand(4, 8)]", "return [torch.rand(4, 8) for _ in range(2)]"),
        ("return [torch.rand(4, 8), torch.rand(4, 8)]", "return [*make()]"),
        ("return [torch.rand(4, 8), torch.rand(4, 8)]", "return make()"),
        ("return [torch.rand(4, 8), torch.rand(4, 8)]", "def f():\n        return 3\n    return f()"),
        ("def get_inputs()", "def get_inputs(size=4)"),
        ("class Model(nn.Module)", "class Model(Base)"),
        ("    def forward", "    @torch.no_grad()\n    def forward"),
    ],
)
def test_what_may_be_right_is_left_alone(tmp_path: Path, old: str, new: str) -> None:
    assert TASK.count(old) == 1
    assert lint(tmp_path, TASK.replace(old, new)) == []


def test_all_faults_are_listed_in_the_order_of_lines(tmp_path: Path) -> None:
    text = TASK.replace("# level: 1", "# level: x").replace("[8]", "[]").replace("def get_inputs", "def inputs")
    assert [(line, rule) for line, rule, _ in lint(tmp_path, text)] == [(0, "inputs"), (1, "header"), (18, "arity")]


@pytest.mark.parametrize(
    ("added", "says"),
    [
        ("CPU_SIZES = {'n': 4}\n", "CPU_SIZES names n"),
        ("PRECISION = 'fp8'\n", "PRECISION must be one of"),
        ("PRECISION = 'ieee'\n", "the header says precision tf32, PRECISION says ieee"),
    ],
)
def test_settings_the_loader_refuses_are_findings(tmp_path: Path, added: str, says: str) -> None:
    found = lint(tmp_path, TASK + added)
    assert [rule for _, rule, _ in found] == ["settings"]
    assert says in found[0][2]
    assert not found[0][2].startswith("mine.py")


def test_name_of_a_built_in_task_is_a_finding(tmp_path: Path) -> None:
    assert "belongs to a built-in task" in lint(tmp_path, TASK, "relu.py")[0][2]


def test_name_that_is_not_loaded_is_a_finding(tmp_path: Path) -> None:
    for name in ("_mine.py", "mine.txt"):
        assert [rule for _, rule, _ in lint(tmp_path, TASK, name)] == ["name"]


def test_level_of_the_folder_counts(tmp_path: Path) -> None:
    (tmp_path / "level2").mkdir()
    assert "says level 2" in lint(tmp_path / "level2", TASK)[0][2]


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"x = 1\0", b"(" * 5000])
def test_text_that_is_no_python_is_one_finding(tmp_path: Path, data: bytes) -> None:
    assert [rule for _, rule, _ in lint(tmp_path, data)] == ["syntax"]
