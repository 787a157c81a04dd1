"""C parameters of a native function: how they are read, and which Python values fit them. Runs inside the sandbox."""

import ctypes
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex

CUDA_STREAM = "cudaStream_t"
"""Parameter type that a call leaves out: it receives PyTorch's current stream."""

_INTEGERS: dict[str, type[Any]] = {
    "int": ctypes.c_int32,
    "int8_t": ctypes.c_int8,
    "int16_t": ctypes.c_int16,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "long": ctypes.c_int64,
    "long long": ctypes.c_int64,
    "unsigned": ctypes.c_uint32,
    "unsigned int": ctypes.c_uint32,
    "uint8_t": ctypes.c_uint8,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_uint64,
}
_FLOATS: dict[str, type[Any]] = {"float": ctypes.c_float, "double": ctypes.c_double}
_VALUES: dict[str, type[Any]] = {**_INTEGERS, **_FLOATS, "bool": ctypes.c_bool}

# Element types of torch that a pointer to each C type may point into. uint16_t is how plain C++ sees 16-bit floats: as
# bits.
_ELEMENTS: dict[str, tuple[str, ...]] = {
    "float": ("torch.float32",),
    "double": ("torch.float64",),
    "bool": ("torch.bool",),
    "int": ("torch.int32",),
    "int8_t": ("torch.int8",),
    "int16_t": ("torch.int16",),
    "int32_t": ("torch.int32",),
    "int64_t": ("torch.int64",),
    "long": ("torch.int64",),
    "long long": ("torch.int64",),
    "uint8_t": ("torch.uint8", "torch.bool"),
    "uint16_t": ("torch.uint16", "torch.float16", "torch.bfloat16"),
    "uint32_t": ("torch.uint32",),
    "uint64_t": ("torch.uint64",),
    "half": ("torch.float16",),
    "__half": ("torch.float16",),
    "__nv_bfloat16": ("torch.bfloat16",),
    "nv_bfloat16": ("torch.bfloat16",),
    "void": (),
}
_QUALIFIERS = frozenset({"const", "volatile", "__restrict__", "__restrict", "restrict"})
_TOKEN = re.compile(r"\w+|\*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, as declared."""

    text: str
    """The declaration, for messages."""

    c_type: str
    """Type without qualifiers; for a pointer the type it points to."""

    is_pointer: bool

    @property
    def ctype(self) -> type[Any]:
        """Type `ctypes` passes it as."""
        return ctypes.c_void_p if self.is_pointer or self.c_type == CUDA_STREAM else _VALUES[self.c_type]

    @property
    def element_names(self) -> str:
        """Element types of tensors a pointer accepts, for messages."""
        return " or ".join(_ELEMENTS[self.c_type])

    def accepts(self, dtype: object) -> bool:
        """Whether a pointer may point into a tensor of that element type; `void` points into any."""
        allowed = _ELEMENTS[self.c_type]
        return not allowed or str(dtype) in allowed

    def number(self, argument: object, where: str) -> object:
        """`argument` as a number that fits the type exactly; `ctypes` alone would cut it off silently.

        Raises:
            TypeError: Not a number, or a tensor.
            ValueError: An integer out of range.
        """
        if hasattr(argument, "data_ptr"):
            raise TypeError(f"{where}: expected a number, got a tensor")
        if self.c_type in _FLOATS:
            if type(argument) is float:
                return argument
            return _convert(float, argument, SupportsFloat, where)
        if self.c_type == "bool":
            return bool(argument)
        value = argument if type(argument) is int else _convert(operator.index, argument, SupportsIndex, where)
        if self.ctype(value).value != value:
            raise ValueError(f"{where}: {value} does not fit {self.c_type}")
        return value


def parse_parameters(function: str, text: str, *, on_cuda: bool) -> tuple[Parameter, ...]:
    """Parameters of a C declaration such as `const float* x, int64_t n`; empty or `void` means none.

    Raises:
        ValueError: A name that is no C identifier, or a type that is not offered.
    """
    if not _IDENTIFIER.fullmatch(function):
        raise ValueError(f"{function!r} is not the name of a C function")
    if text.strip() in {"", "void"}:
        return ()
    return tuple(_parse(function, part.strip(), on_cuda) for part in text.split(","))


def _parse(function: str, text: str, on_cuda: bool) -> Parameter:
    tokens = [token for token in _TOKEN.findall(text) if token not in _QUALIFIERS]
    if re.sub(r"[\w\s*]", "", text) or tokens.count("*") > 1:
        raise ValueError(f"{function}: cannot read the parameter {text!r}; offered are pointers and numbers")
    if "*" in tokens:
        star = tokens.index("*")
        c_type, is_pointer = " ".join(tokens[:star]), True
        known = c_type in _ELEMENTS and len(tokens) - star <= 2
    else:
        is_pointer = False
        values = {*_VALUES, CUDA_STREAM} if on_cuda else set(_VALUES)
        spellings = (" ".join(tokens), " ".join(tokens[:-1]))
        c_type = next((spelling for spelling in spellings if spelling in values), "")
        known = bool(c_type)
    if not known:
        offered = "numbers " + ", ".join(_VALUES) + "; pointers to " + ", ".join(_ELEMENTS)
        stream = f"; and {CUDA_STREAM}" if on_cuda else ""
        raise ValueError(f"{function}: the type of {text!r} is not offered; there are {offered}{stream}")
    return Parameter(text, c_type, is_pointer)


def _convert(convert: Callable[[Any], Any], argument: object, kind: type[Any], where: str) -> Any:
    if not isinstance(argument, kind):
        raise TypeError(f"{where}: expected a number, got {type(argument).__name__}")
    try:
        return convert(argument)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{where}: expected a number, got {type(argument).__name__}") from error
