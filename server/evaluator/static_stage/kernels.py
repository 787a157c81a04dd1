"""Whether a module has a kernel of its own that it could run at all. Disposable child; syntax only.

This finds modules that forgot their kernel, not decoys: whether the kernel does the work is asked of the running
submission.

- Triton: a function decorated with, or passed to, `triton.jit`, and named somewhere outside of kernels, as a launch
  needs.
- CUDA and C++: a call that compiles or loads native code (`kernel_env.native.load`, `load_inline`, a raw kernel, NVRTC,
  a shared library).
"""

import ast
from collections.abc import Iterator

from .names import Names

_NATIVE_CALLS = frozenset(
    {
        "load_inline", "RawKernel", "RawModule", "ElementwiseKernel", "ReductionKernel", "SourceModule",
        "CDLL", "PyDLL", "LoadLibrary", "load_library", "dlopen",
        "cuModuleLoad", "cuModuleLoadData", "cuModuleLoadDataEx", "cuLibraryLoadData", "nvrtcCompileProgram",
        "_compile_kernel", "compile_kernel",
    }
)  # fmt: skip

# `load` alone is a common name; it counts unless it comes from one of these.
_OTHER_LOADS = frozenset({"torch.load", "torch.jit.load", "torch.hub.load", "torch.export.load"})
_OTHER_LOADERS = frozenset(
    {"json", "pickle", "numpy", "np", "yaml", "marshal", "tomllib", "joblib", "safetensors", "triton"}
)

_FOREIGN_JITS = frozenset({"numba", "jax", "torch"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def has_triton_kernel(tree: ast.Module, names: Names) -> bool:
    """Whether some Triton kernel is defined and named outside of kernels."""
    nodes = list(ast.walk(tree))
    if any(isinstance(node, ast.Call) and node.args and _is_jit(node.func, names) for node in nodes):
        return True  # `kernel = triton.jit(function)`: launched under a name that is not followed here
    kernels = {node for node in nodes if isinstance(node, _FUNCTIONS) and _is_kernel(node, names)}
    kernel_names = {kernel.name for kernel in kernels}
    return any(name in kernel_names for name in _names_outside(tree, kernels))


def has_native_kernel(tree: ast.Module, names: Names) -> bool:
    """Whether native code is compiled or loaded somewhere."""
    return any(isinstance(node, ast.Call) and _loads_native(node, names) for node in ast.walk(tree))


def _is_kernel(function: _Function, names: Names) -> bool:
    decorators = (node.func if isinstance(node, ast.Call) else node for node in function.decorator_list)
    return any(_is_jit(decorator, names) for decorator in decorators)


def _is_jit(node: ast.expr, names: Names) -> bool:
    origin = names.dotted(node)
    if origin is None:
        return isinstance(node, ast.Attribute) and node.attr == "jit"
    return origin.rpartition(".")[2] == "jit" and origin.partition(".")[0] not in _FOREIGN_JITS


def _names_outside(tree: ast.Module, kernels: set[_Function]) -> Iterator[str]:
    """Names and attributes read in code that is not part of a kernel."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if node in kernels:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        pending.extend(ast.iter_child_nodes(node))


def _loads_native(call: ast.Call, names: Names) -> bool:
    origin = names.dotted(call.func) or (f"?.{call.func.attr}" if isinstance(call.func, ast.Attribute) else "?")
    last = origin.rpartition(".")[2]
    if last != "load":
        return last in _NATIVE_CALLS
    return origin not in _OTHER_LOADS and origin.partition(".")[0] not in _OTHER_LOADERS
