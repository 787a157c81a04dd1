"""The import directions that hold the trust boundary up, read off the source without importing any of it.

Each rule is checked over the tree, and each one is shown to notice a planted offender.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

TORCH = ("torch", "triton")
"""Importing either in the server process costs seconds and, with a GPU, risks opening CUDA there."""

VAGUE_NAMES = frozenset({"common", "data", "helper", "helpers", "info", "manager", "misc", "util", "utils"})

SUBMISSION_SIDE = "server.candidate"
TASK_TEXT = ("server.tasks.builtin.", "server.tasks.examples.")
"""Files read as text; no trusted process imports them."""


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name, made absolute."""

    importer: str
    target: str
    line: int
    is_relative: bool
    is_lazy: bool
    """Inside a function: runs only when it is called."""

    def reaches(self, *packages: str) -> bool:
        """True if the target is one of `packages` or lies in one."""
        return any(self.target == package or self.target.startswith(f"{package}.") for package in packages)

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


@dataclass(frozen=True, slots=True)
class Module:
    """One source file under its dotted name in the checkout."""

    name: str
    is_package: bool
    tree: ast.Module

    @classmethod
    def parse(cls, name: str, source: str, *, is_package: bool = False) -> "Module":
        return cls(name, is_package, ast.parse(source))

    def imports(self) -> Iterator[Import]:
        """Every import, wherever it stands; those for type checkers alone as well."""
        lazy = {
            id(inner)
            for outer in ast.walk(self.tree)
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
            for inner in ast.walk(outer)
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(self.name, alias.name, node.lineno, False, id(node) in lazy)
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node)
                for alias in node.names:
                    yield Import(self.name, f"{base}.{alias.name}", node.lineno, node.level > 0, id(node) in lazy)

    def _base(self, node: ast.ImportFrom) -> str:
        """Absolute name of what a `from` statement imports from."""
        if node.level == 0:
            return node.module or ""
        parts = self.name.split(".")
        package = parts if self.is_package else parts[:-1]
        kept = package[: len(package) - (node.level - 1)]
        return ".".join([*kept, *([node.module] if node.module else [])])


Rule = Callable[[Module], Iterable[str]]
"""Offences of one module, in words."""


def client_is_light(module: Module) -> Iterable[str]:
    """`kernel_env` knows neither the server nor torch; its helper for submissions takes torch when it is called."""
    if not _within(module, "kernel_env"):
        return
    for found in module.imports():
        lazy_torch = module.name == "kernel_env.native" and found.is_lazy and found.reaches("torch")
        if found.reaches("server", *TORCH) and not lazy_torch:
            yield str(found)


def server_process_is_free_of_torch(module: Module) -> Iterable[str]:
    """Nothing the server process loads imports torch, not even inside a function."""
    parts = module.name.split(".")
    is_shell = parts[0] == "server" and len(parts) <= 2 and not module.is_package
    if is_shell or _within(module, "server.tasks", "server.evaluator", "server.sandbox"):
        yield from (str(found) for found in module.imports() if found.reaches(*TORCH))


def candidate_knows_only_protocol_and_sandbox(module: Module) -> Iterable[str]:
    """The process that runs submissions holds no code of those who judge them."""
    if _within(module, SUBMISSION_SIDE):
        allowed = (SUBMISSION_SIDE, "server.protocol", "server.conventions", "server.operators", "server.sandbox")
        yield from (str(found) for found in module.imports() if found.reaches("server") and not found.reaches(*allowed))


def evaluator_starts_programs_and_imports_none(module: Module) -> Iterable[str]:
    """Judge and candidate are processes of their own: the evaluator knows their command lines, not their modules."""
    if _within(module, "server.evaluator"):
        yield from (str(found) for found in module.imports() if found.reaches("server.judge", SUBMISSION_SIDE))


def judge_imports_no_candidate(module: Module) -> Iterable[str]:
    """The judge never runs what the submission's side runs."""
    if _within(module, "server.judge"):
        yield from (str(found) for found in module.imports() if found.reaches(SUBMISSION_SIDE))


def settings_are_read_in_two_places(module: Module) -> Iterable[str]:
    """The environment is read by `app` and `cli`; everything else is handed values."""
    if module.name in {"server.app", "server.cli", "server.settings"} or not _within(module, "server"):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr == "from_environ":
            yield f"{module.name}:{node.lineno} reads the settings"


def server_imports_its_own_by_relative_name(module: Module) -> Iterable[str]:
    """The server runs as `server` and as `kernel_env.server`; an absolute name would load it twice in one of them."""
    for found in module.imports():
        if not found.is_relative and found.reaches("server", "kernel_env.server"):
            yield str(found)


def names_say_what_a_module_does(module: Module) -> Iterable[str]:
    """No drawer for odds and ends."""
    if module.name.rpartition(".")[2] in VAGUE_NAMES:
        yield f"{module.name} says nothing about its content"


def _within(module: Module, *packages: str) -> bool:
    return any(module.name == package or module.name.startswith(f"{package}.") for package in packages)


def _tree() -> list[Module]:
    """Every module of the client and the server, those that are only read as text left out."""
    modules = []
    for path in sorted([*ROOT.glob("kernel_env/**/*.py"), *ROOT.glob("server/**/*.py")]):
        is_package = path.name == "__init__.py"
        dotted = ".".join((path.parent if is_package else path.with_suffix("")).relative_to(ROOT).parts)
        if not dotted.startswith(TASK_TEXT):
            modules.append(Module.parse(dotted, path.read_text(), is_package=is_package))
    return modules


RULES_AND_OFFENDERS: tuple[tuple[Rule, str, str], ...] = (
    (client_is_light, "kernel_env.client", "import torch"),
    (client_is_light, "kernel_env.native", "import torch"),
    (client_is_light, "kernel_env.models", "def f():\n    from server.tasks import task"),
    (server_process_is_free_of_torch, "server.app", "def f():\n    import torch.cuda"),
    (server_process_is_free_of_torch, "server.tasks.registry", "from torch import nn"),
    (server_process_is_free_of_torch, "server.sandbox.doctor", "import triton"),
    (candidate_knows_only_protocol_and_sandbox, "server.candidate.zygote", "from ..judge import device"),
    (candidate_knows_only_protocol_and_sandbox, "server.candidate.zygote", "from .. import errors"),
    (evaluator_starts_programs_and_imports_none, "server.evaluator.evaluator", "from ..judge.device import Device"),
    (evaluator_starts_programs_and_imports_none, "server.evaluator.evaluator", "from .. import candidate"),
    (judge_imports_no_candidate, "server.judge.session", "from ..candidate.memory import Memory"),
    (
        settings_are_read_in_two_places,
        "server.environment",
        "Settings.from_environ({})",
    ),
    (server_imports_its_own_by_relative_name, "server.app", "from server.errors import Busy"),
    (server_imports_its_own_by_relative_name, "server.app", "import kernel_env.server.errors"),
    (names_say_what_a_module_does, "server.evaluator.utils", ""),
)


RULES = tuple(dict.fromkeys(rule for rule, _, _ in RULES_AND_OFFENDERS))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_holds_over_the_tree(rule: Rule) -> None:
    offences = [offence for module in _tree() for offence in rule(module)]

    assert offences == [], rule.__doc__


@pytest.mark.parametrize(("rule", "name", "source"), RULES_AND_OFFENDERS)
def test_rule_notices_an_offender(rule: Rule, name: str, source: str) -> None:
    assert list(rule(Module.parse(name, source)))


@pytest.mark.parametrize(
    ("rule", "name", "source"),
    [
        (client_is_light, "kernel_env.native", "def f():\n    import torch"),
        (candidate_knows_only_protocol_and_sandbox, "server.candidate.zygote", "from ..protocol import Channel"),
        (candidate_knows_only_protocol_and_sandbox, "server.candidate.zygote", "from . import memory"),
        (server_process_is_free_of_torch, "server.judge.device", "import torch"),
        (server_imports_its_own_by_relative_name, "server.app", "from .errors import Busy"),
    ],
)
def test_rule_allows_what_it_should(rule: Rule, name: str, source: str) -> None:
    assert not list(rule(Module.parse(name, source)))


def test_the_tree_is_really_read() -> None:
    """Guards the checks above against an empty list of modules."""
    names = {module.name for module in _tree()}

    assert {"kernel_env.models", "server", "server.evaluator.interface", "server.tasks.task"} <= names
