"""What names of a module stand for: imports, aliases, attribute chains. Disposable child; syntax only, nothing is run.

Names are resolved for the file as a whole, without scopes. A name that is also bound to something unknown (a parameter,
a value) resolves to nothing: the rules built on this must not fire on honest code, and no resolution of text can stop a
determined author.
"""

import ast
from collections.abc import Iterator

_IMPORT_CALLS = frozenset({"__import__", "importlib.import_module", "builtins.__import__"})
_PASSES = 4
"""Rounds over aliases of aliases; chains longer than this stay unresolved."""


class Names:
    """Resolves expressions of one module to dotted origins, such as `torch.cuda.synchronize`."""

    def __init__(self, tree: ast.Module) -> None:
        self._origins: dict[str, str] = {}
        self._ambiguous: set[str] = set()
        assigned: list[tuple[str, ast.expr]] = []
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._bind_import(node)
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                if not (
                    isinstance(node.value, ast.Constant) and node.value.value is None
                ):  # `triton = None` after ImportError
                    assigned.append((node.targets[0].id, node.value))
            else:
                self._ambiguous.update(_bound_otherwise(node))
        self._bind_aliases(assigned)

    def dotted(self, node: ast.expr) -> str | None:
        """Origin of an expression, or None where it is not known."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            root = self._origins.get(node.id, node.id) if node.id not in self._ambiguous else None
        elif isinstance(node, ast.Call):
            root = self._imported_by(node)
        else:
            root = None
        return None if root is None else ".".join([root, *reversed(parts)])

    def _bind_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                prefix = f"{node.module}." if node.module else ""
                self._origins[alias.asname or alias.name] = prefix + alias.name
            elif alias.asname:
                self._origins[alias.asname] = alias.name
            else:
                top = alias.name.partition(".")[0]
                self._origins[top] = top

    def _bind_aliases(self, assigned: list[tuple[str, ast.expr]]) -> None:
        imported = set(self._origins)
        for _ in range(_PASSES):
            for name, value in assigned:
                origin = self.dotted(value)
                if origin is not None and name not in imported and origin.partition(".")[0] in _tops(self._origins):
                    self._origins[name] = origin
        for name, value in assigned:
            origin = self.dotted(value)
            if origin is None or origin != self._origins.get(name):
                self._ambiguous.add(name)

    def _imported_by(self, call: ast.Call) -> str | None:
        """Module an `__import__("torch")` or `importlib.import_module("torch.cuda")` gives."""
        function = self.dotted(call.func)
        if function not in _IMPORT_CALLS or not call.args:
            return None
        argument = call.args[0]
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            return None
        return argument.value if function == "importlib.import_module" else argument.value.partition(".")[0]


def _tops(origins: dict[str, str]) -> set[str]:
    return {origin.partition(".")[0] for origin in origins.values()} | {"builtins", "__builtins__"}


def _bound_otherwise(node: ast.AST) -> Iterator[str]:
    """Names a node binds to a value that is not known here."""
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        yield from _target_names(node.target)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _target_names(node.optional_vars)
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _target_names(target)


def _target_names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _target_names(element)
    elif isinstance(target, ast.Starred):
        yield from _target_names(target.value)
