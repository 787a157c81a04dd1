"""Whether a task's class and functions can be called as the judge calls them. Trusted side; reads the syntax tree.

`Model(*get_init_inputs())` and `model(*get_inputs())`. How many values a function returns is known only where each of
its `return` statements holds a list or tuple without `*`; anything else is left to a run.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_MAKERS = {"get_inputs": "inputs", "get_init_inputs": "init_inputs"}
_RETURNED = {
    "get_inputs": "a list of the arguments of forward, for instance [torch.rand(8)]",
    "get_init_inputs": "a list of the arguments of Model, [] if there are none",
}
_NOT_A_LIST = (ast.Dict, ast.Set, ast.Constant, ast.JoinedStr, ast.Lambda)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that cannot work."""

    line: int
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Arity:
    """How many positional arguments a method takes, `self` left out."""

    least: int
    most: int | None
    """None: any number."""

    def admits(self, count: int) -> bool:
        """Whether a call with `count` arguments works."""
        return self.least <= count and (self.most is None or count <= self.most)

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least} or more"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


def faults(tree: ast.Module) -> Iterator[Fault]:
    """Every fault of a task's module."""
    model = _last(tree.body, ast.ClassDef, "Model")
    if model is None:
        yield Fault(0, "model", "no class Model(nn.Module) at module level" + _nearest_class(tree))
    else:
        yield from _model(model)
    for name, rule in _MAKERS.items():
        function = _function(tree.body, name)
        if function is None:
            yield Fault(0, rule, f"no function {name}() at module level; it returns {_RETURNED[name]}")
            continue
        yield from _maker(function, rule)
        if model is not None:
            yield from _call(model, function)


def _model(model: ast.ClassDef) -> Iterator[Fault]:
    if not model.bases:
        yield Fault(model.lineno, "model", "class Model has no base; expected class Model(nn.Module)")
    forward = _function(model.body, "forward")
    if forward is None:
        if _inherits_from_module_alone(model):
            yield Fault(model.lineno, "forward", "class Model has no forward(self, ...)")
    else:
        yield from _method(forward, "forward")
    init = _function(model.body, "__init__")
    if init is not None:
        yield from _method(init, "model")


def _method(method: Function, rule: str) -> Iterator[Fault]:
    name = method.name
    if isinstance(method, ast.AsyncFunctionDef):
        yield Fault(method.lineno, rule, f"{name} is async; expected def {name}(self, ...)")
    elif any(_is_yield(node) for node in _own_nodes(method)):
        yield Fault(method.lineno, rule, f"{name} is a generator; expected one that returns")
    if _decorators(method) & {"staticmethod", "classmethod"}:
        yield Fault(method.lineno, rule, f"{name} is no instance method; expected def {name}(self, ...)")
    elif not _positional(method) and method.args.vararg is None:
        yield Fault(method.lineno, rule, f"{name} takes no self; expected def {name}(self, ...)")
    required = _required_keywords(method)
    if required:
        yield Fault(
            method.lineno, rule, f"{name} is called with positional arguments only, and needs {', '.join(required)}"
        )
    if name == "forward" and not any(_is_yield(node) or _has_value(node) for node in _own_nodes(method)):
        yield Fault(method.lineno, rule, "forward returns nothing; expected a tensor, or a tuple, list or dict of them")


def _maker(function: Function, rule: str) -> Iterator[Fault]:
    name = function.name
    if isinstance(function, ast.AsyncFunctionDef):
        yield Fault(function.lineno, rule, f"{name} is async; expected def {name}()")
    required = len(_positional(function)) - len(function.args.defaults)
    names = [argument.arg for argument in _positional(function)[:required]] + _required_keywords(function)
    if names:
        yield Fault(function.lineno, rule, f"{name} is called without arguments, and needs {', '.join(names)}")
    if any(_is_yield(node) for node in _own_nodes(function)):
        yield Fault(function.lineno, rule, f"{name} is a generator; expected {_RETURNED[name]}")
        return
    values = [node for node in _own_nodes(function) if isinstance(node, ast.Return) and _has_value(node)]
    if not values:
        yield Fault(function.lineno, rule, f"{name} returns nothing; expected {_RETURNED[name]}")
    for value in values:
        if isinstance(value.value, _NOT_A_LIST) or _is_call_of_torch(value.value):
            text = ast.unparse(value)[:60]
            yield Fault(value.lineno, rule, f"{name} returns no list: {text!r}; expected {_RETURNED[name]}")


def _call(model: ast.ClassDef, function: Function) -> Iterator[Fault]:
    """Does what `function` returns fit what takes it?"""
    counts = _counts(function)
    arity = _arity(model, "forward" if function.name == "get_inputs" else "__init__")
    if counts is None or arity is None:
        return
    target = "Model.forward" if function.name == "get_inputs" else "Model.__init__"
    for line, count in counts:
        if not arity.admits(count):
            yield Fault(line, "arity", f"{function.name} returns {count} values, {target} takes {arity} besides self")


def _counts(function: Function) -> list[tuple[int, int]] | None:
    """Line and number of values of each return; None where one cannot be told."""
    found = []
    for node in _own_nodes(function):
        if not isinstance(node, ast.Return):
            continue
        if not isinstance(node.value, ast.List | ast.Tuple):
            return None
        if any(isinstance(element, ast.Starred) for element in node.value.elts):
            return None
        found.append((node.lineno, len(node.value.elts)))
    return found


def _arity(model: ast.ClassDef, name: str) -> Arity | None:
    method = _function(model.body, name)
    if method is None:
        # nn.Module's own constructor takes nothing; another base may have one that does.
        return Arity(0, 0) if name == "__init__" and _inherits_from_module_alone(model) else None
    positional = len(_positional(method))
    own = 0 if positional == 0 else 1
    if method.decorator_list or (own == 0 and method.args.vararg is None):
        return None
    most = None if method.args.vararg is not None else positional - own
    return Arity(max(0, positional - own - len(method.args.defaults)), most)


def _inherits_from_module_alone(model: ast.ClassDef) -> bool:
    """Whether the only base is torch's module class; whatever else there is may bring methods along."""
    return [_dotted(base) for base in model.bases] in (["nn.Module"], ["torch.nn.Module"], ["Module"], [])


def _is_call_of_torch(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and _dotted(node.func).startswith("torch.")


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _nearest_class(tree: ast.Module) -> str:
    near = [node for node in tree.body if isinstance(node, ast.ClassDef) and "model" in node.name.lower()]
    return f"; line {near[0].lineno} has class {near[0].name}" if near else ""


def _function(body: list[ast.stmt], name: str) -> Function | None:
    found = [node for node in body if isinstance(node, Function) and node.name == name]
    return found[-1] if found else None


def _last(body: list[ast.stmt], kind: type[ast.ClassDef], name: str) -> ast.ClassDef | None:
    found = [node for node in body if isinstance(node, kind) and node.name == name]
    return found[-1] if found else None


def _positional(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args]


def _required_keywords(function: Function) -> list[str]:
    pairs = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return [argument.arg for argument, default in pairs if default is None]


def _decorators(function: Function) -> set[str]:
    return {_dotted(decorator) for decorator in function.decorator_list}


def _is_yield(node: ast.AST) -> bool:
    return isinstance(node, ast.Yield | ast.YieldFrom)


def _has_value(node: ast.AST) -> bool:
    return isinstance(node, ast.Return) and node.value is not None


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions and classes inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
