"""Bright line: a submission does not change torch, triton, time, builtins or the table of loaded modules.

Disposable child; syntax only. It tells an agent early what is never allowed. It is no defence: the judge believes
nothing a patched process says, and an author who wants to can patch without any of the forms below.

Covered: assignment, augmented assignment and deletion of attributes and items, through import aliases, simple aliases,
`__dict__` and `vars()`; `setattr`, `delattr`, `__setattr__`; updates of `sys.modules` and of a module's `__dict__`.
Not covered: names built at run time, `exec`, `ctypes`, frames, the garbage collector.
"""

import ast
import sys
from collections.abc import Iterator

from .names import Names

_PROTECTED = frozenset({"torch", "triton", "time", "builtins", "__builtins__"})
_MODULE_TABLE = "sys.modules"

# Switches of torch and triton that a module sets by assignment. They choose precision or verbosity, and the judge's
# comparison answers for the result.
_SETTINGS = (
    "torch.backends.",
    "torch._inductor.config.",
    "torch._dynamo.config.",
    "torch._functorch.config.",
    "triton.knobs.",
)

_SETTERS = frozenset({"setattr", "delattr", "builtins.setattr", "builtins.delattr"})
_BOUND_SETTER_ARGUMENTS = {"__setattr__": 2, "__delattr__": 1}
_TABLE_METHODS = frozenset({"update", "pop", "popitem", "clear", "setdefault", "__setitem__", "__delitem__"})


def find_patch(tree: ast.Module, names: Names) -> tuple[int, str] | None:
    """Line and name of the first thing that is patched, or None."""
    found = [patch for node in ast.walk(tree) for patch in _patches(node, names)]
    return min(found) if found else None


def _patches(node: ast.AST, names: Names) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Call):
        patched = _patched_by_call(node, names)
    elif isinstance(node, (ast.Attribute, ast.Subscript)):
        patched = None if isinstance(node.ctx, ast.Load) else _protected_target(node, names)
    else:
        return
    if patched is not None:
        yield node.lineno, patched


def _protected_target(target: ast.Attribute | ast.Subscript, names: Names) -> str | None:
    if isinstance(target, ast.Attribute):
        origin = _table(target, names)
    else:
        origin = _table(target.value, names)
        if origin == _MODULE_TABLE:
            return origin if _is_foreign_module(target.slice) else None
    return origin if origin is not None and _is_protected(origin) else None


def _patched_by_call(call: ast.Call, names: Names) -> str | None:
    function = names.dotted(call.func)
    if function in _SETTERS and call.args:
        return _protected_object(call.args[0], names)
    if not isinstance(call.func, ast.Attribute):
        return None
    bound_arguments = _BOUND_SETTER_ARGUMENTS.get(call.func.attr)
    if bound_arguments is not None and call.args:
        # `nn.Module.__setattr__(self, name, value)` is honest: with the object as an argument, only that object counts.
        is_bound = len(call.args) == bound_arguments
        return _protected_object(call.func.value if is_bound else call.args[0], names)
    if call.func.attr in _TABLE_METHODS:
        table = _table(call.func.value, names)
        if table == _MODULE_TABLE:
            return table if not call.args or _is_foreign_module(call.args[0]) else None
        if table is not None and table.endswith("__dict__") and _is_protected(table):
            return table
    return None


def _protected_object(node: ast.expr, names: Names) -> str | None:
    """The object whose attribute is set, if it is a protected module or something inside one."""
    origin = _table(node, names)
    if origin is None:
        return None
    return origin if _is_protected(f"{origin}.") or origin == _MODULE_TABLE else None


def _table(node: ast.expr, names: Names) -> str | None:
    """Origin of the thing indexed; `vars(torch)` and `sys.modules["torch"]` count as torch itself."""
    if isinstance(node, ast.Call) and names.dotted(node.func) in {"vars", "builtins.vars"} and node.args:
        origin = names.dotted(node.args[0])
        return None if origin is None else f"{origin}.__dict__"
    if isinstance(node, ast.Subscript) and names.dotted(node.value) == _MODULE_TABLE:
        key = node.slice
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    origin = names.dotted(node)
    if origin is None and isinstance(node, ast.Attribute):
        inner = _table(node.value, names)
        return None if inner is None else f"{inner}.{node.attr}"
    return origin


def _is_protected(origin: str) -> bool:
    if origin.startswith(_SETTINGS):
        return False
    return origin.partition(".")[0] in _PROTECTED


def _is_foreign_module(key: ast.expr) -> bool:
    """Whether an entry of `sys.modules` may be somebody else's. Registering oneself under a new name is honest."""
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        return True
    top = key.value.partition(".")[0]
    return top in _PROTECTED or top in sys.stdlib_module_names or top in {"kernel_env", "numpy"}
