"""The static rules in order, over the AST of one submission. Disposable child; syntax only, nothing of it is run.

Comments and strings never decide anything. Each rule has an id that feedback and tests quote:

    syntax             not Python, or a construct that Python's compiler refuses
    no_model           no class `ModelNew` at module level
    no_forward         `ModelNew` has no `forward`
    inherits_reference `ModelNew` inherits `Model`
    patching           an attribute of torch, triton, time, builtins or an entry of sys.modules is changed
    no_kernel          no kernel in the submission's language
"""

import ast
from dataclasses import dataclass

from .kernels import has_native_kernel, has_triton_kernel
from .names import Names
from .patching import find_patch

_ENTRY = "ModelNew"
_REFERENCE = "Model"

# Bases that are known to bring no `forward` of their own.
_PLAIN_BASES = frozenset(
    {"torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module", "nn.Module", "Module", "object"}
)

_NOT_PYTHON = "not Python: {}. Send one complete Python module, without prose."
_NO_MODEL = (
    "no class ModelNew at module level. Define `class ModelNew(nn.Module)` with the constructor and forward() of the "
    "reference."
)
_NO_FORWARD = "class ModelNew has no forward(). Define it with the reference's arguments."
_INHERITS = "ModelNew must not inherit Model. Inherit torch.nn.Module and do the work in a kernel of your own."
_PATCHING = (
    "{} is changed. A submission must leave torch, triton, time, builtins and sys.modules as they are; remove this."
)
_NO_TRITON = (
    "no Triton kernel is launched. Write a function decorated with @triton.jit and launch it in forward() as "
    "kernel[grid](...)."
)
_NO_NATIVE = "no {} kernel is built. Compile one with kernel_env.native.load (or load_inline) and call it in forward()."
_SEND_AS_TRITON = " If this is a Triton kernel, send language='triton'."
_MAX_TARGET_CHARS = 80


class Unparsable(Exception):
    """CPython gave up on the text for another reason than its syntax."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule."""

    rule: str
    line: int | None
    message: str


def first_violation(code: str, language: str) -> Violation | None:
    """First rule that `code` breaks, or None.

    Raises:
        Unparsable: The parser or the compiler cannot handle the text.
        RecursionError, MemoryError: The rules cannot.
    """
    try:
        tree = ast.parse(code, filename="submission")
        compile(tree, filename="submission", mode="exec", dont_inherit=True)
    except SyntaxError as error:
        return Violation("syntax", error.lineno, _NOT_PYTHON.format(error.msg))
    except Exception as error:  # whatever CPython raises here is about the text: none of our code runs inside
        raise Unparsable from error
    names = Names(tree)
    return _entry_violation(tree, names) or _patch_violation(tree, names) or _kernel_violation(tree, names, language)


def _entry_violation(tree: ast.Module, names: Names) -> Violation | None:
    classes = {node.name: node for node in _module_level(tree) if isinstance(node, ast.ClassDef)}
    entry = classes.get(_ENTRY)
    if entry is None:
        return None if _is_assigned(tree) else Violation("no_model", None, _NO_MODEL)
    lineage = _lineage(entry, classes, names)
    if lineage.reference_line is not None:
        return Violation("inherits_reference", lineage.reference_line, _INHERITS)
    if not lineage.has_forward and lineage.is_known:
        return Violation("no_forward", entry.lineno, _NO_FORWARD)
    return None


def _patch_violation(tree: ast.Module, names: Names) -> Violation | None:
    patch = find_patch(tree, names)
    if patch is None:
        return None
    line, target = patch
    return Violation("patching", line, _PATCHING.format(target[:_MAX_TARGET_CHARS]))


def _kernel_violation(tree: ast.Module, names: Names, language: str) -> Violation | None:
    has_triton = has_triton_kernel(tree, names)
    if language == "triton":
        return None if has_triton else Violation("no_kernel", None, _NO_TRITON)
    if has_native_kernel(tree, names):
        return None
    message = _NO_NATIVE.format("CUDA" if language == "cuda" else "C++")
    return Violation("no_kernel", None, message + (_SEND_AS_TRITON if has_triton else ""))


@dataclass(frozen=True, slots=True)
class _Lineage:
    """What the bases of a class say, as far as the file shows them."""

    has_forward: bool
    is_known: bool
    """Whether every base is a class of this file or one that is known to have no `forward`."""

    reference_line: int | None


def _lineage(entry: ast.ClassDef, classes: dict[str, ast.ClassDef], names: Names) -> _Lineage:
    has_forward, is_known, reference_line = False, True, None
    pending, seen = [entry], {entry.name}
    while pending:
        node = pending.pop()
        has_forward = has_forward or _defines_forward(node)
        is_known = is_known and not node.decorator_list and not node.keywords
        for base in node.bases:
            name = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else None
            if name == _REFERENCE and reference_line is None:
                reference_line = node.lineno
            if isinstance(base, ast.Name) and base.id in classes:
                if base.id not in seen:
                    seen.add(base.id)
                    pending.append(classes[base.id])
            elif names.dotted(base) not in _PLAIN_BASES:
                is_known = False
    return _Lineage(has_forward, is_known, reference_line)


def _defines_forward(node: ast.ClassDef) -> bool:
    for statement in ast.walk(node):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == "forward":
            return True
        if isinstance(statement, ast.Name) and statement.id == "forward" and isinstance(statement.ctx, ast.Store):
            return True
        if (
            isinstance(statement, ast.Attribute)
            and statement.attr == "forward"
            and isinstance(statement.ctx, ast.Store)
        ):
            return True  # `self.forward = ...` in the constructor
    return False


def _module_level(tree: ast.Module) -> list[ast.stmt]:
    """Statements run at import outside functions and classes, those inside `if`, `try`, `with` and loops included."""
    found: list[ast.stmt] = []
    pending: list[ast.AST] = [tree]
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if isinstance(child, ast.stmt):
                found.append(child)
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
                pending.append(child)
    return found


def _is_assigned(tree: ast.Module) -> bool:
    """Whether `ModelNew` is bound by an assignment or an import at module level; its class is then not followed."""
    for statement in _module_level(tree):
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == _ENTRY for target in targets):
                return True
        if isinstance(statement, ast.ImportFrom) and any(
            (alias.asname or alias.name) == _ENTRY for alias in statement.names
        ):
            return True
    return False
