'''Native kernels for submissions: compile C++ or CUDA in about a second, call it with tensors.

Runs inside the sandbox, in the process of a submission; nothing here is trusted with a verdict. Only the standard
library is imported; torch is asked for the device and the stream when a CUDA source is loaded or called.

    from kernel_env import native

    kernels = native.load(
        """
        __global__ void relu_kernel(const float* x, float* y, int64_t n) {
            int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
            if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
        }
        extern "C" void relu(const float* x, float* y, int64_t n) {
            relu_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
        }
        """,
        {"relu": "const float* x, float* y, int64_t n"},
    )
    kernels.relu(x, y, x.numel())

**Functions** are `extern "C"`, return nothing, and are named in `functions` with their C parameters, spelled as in the
source; the compiler checks that both agree. For a pointer pass a contiguous tensor of the matching type on the right
device, `None` for a null pointer, or `x.data_ptr()`, which is not checked. For a number pass a Python number that fits.

**Streams.** CUDA sources are compiled so that `<<<grid, block>>>` without a stream means the per-thread default stream.
An evaluation runs and captures submissions on exactly that stream. Elsewhere it still orders itself with PyTorch's
ordinary (legacy) default stream, but not with a side stream made by `torch.cuda.Stream()`. A parameter of type
`cudaStream_t` is right everywhere: it is left out of the call, and receives PyTorch's current stream.

**Errors.** A source that does not compile raises `NativeCompileError` with lines counted as in the source. After every
call of a CUDA function the launch status is read and cleared, which is allowed during capture; a failed launch raises
`RuntimeError`. An error inside a running kernel appears at the next synchronisation, as with every CUDA program.
'''

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from .compilers import NativeCompileError, bounded, build_library, cxx_toolchain, nvcc_toolchain
from .signature import CUDA_STREAM, Parameter, parse_parameters

__all__ = ["NativeCompileError", "NativeFunction", "NativeLibrary", "load"]

_TAKE_ERROR = "kernel_env_take_launch_error"
_TAKE_ERROR_SOURCE = f"""
extern "C" const char* {_TAKE_ERROR}() {{
    const cudaError_t status = cudaGetLastError();
    return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}}
"""


class _Tensor(Protocol):
    """What is asked of a tensor; torch itself is not imported for it."""

    @property
    def is_cuda(self) -> bool: ...

    @property
    def dtype(self) -> object: ...

    def is_contiguous(self) -> bool: ...

    def data_ptr(self) -> int: ...


class NativeFunction:
    """One `extern "C"` function. Call it with one argument per parameter, streams left out; it returns None."""

    def __init__(
        self, name: str, parameters: Sequence[Parameter], symbol: Callable[..., object], on_cuda: bool
    ) -> None:
        self.__name__ = name
        self._parameters = tuple(parameters)
        self._symbol = symbol
        self._on_cuda = on_cuda
        self._expected = sum(parameter.c_type != CUDA_STREAM for parameter in parameters)
        self._take_error: Callable[[], bytes | None] | None = None

    def __call__(self, *arguments: object) -> None:
        """Check and convert the arguments, then call.

        Raises:
            TypeError: Wrong number of arguments, or one of the wrong kind or element type.
            ValueError: A tensor that is not contiguous or on the wrong device, or a number out of range.
            RuntimeError: CUDA refused the launch.
        """
        if len(arguments) != self._expected:
            names = ", ".join(parameter.text for parameter in self._parameters if parameter.c_type != CUDA_STREAM)
            raise TypeError(f"{self.__name__} takes {self._expected} arguments ({names}), got {len(arguments)}")
        given = iter(arguments)
        converted = [
            _current_stream() if parameter.c_type == CUDA_STREAM else self._convert(parameter, next(given))
            for parameter in self._parameters
        ]
        self._symbol(*converted)
        if self._take_error is not None and (error := self._take_error()) is not None:
            raise RuntimeError(f"CUDA refused a launch in {self.__name__}: {error.decode('utf-8', 'replace')}")

    def check_launches_with(self, take_error: Callable[[], bytes | None]) -> None:
        """After every call ask `take_error` for the text of a failed launch."""
        self._take_error = take_error

    def _convert(self, parameter: Parameter, argument: object) -> object:
        where = f"{self.__name__}: argument {parameter.text!r}"
        if parameter.is_pointer:
            return _pointer(parameter, argument, self._on_cuda, where)
        return parameter.number(argument, where)


class NativeLibrary:
    """A loaded library: its functions are attributes."""

    def __init__(self, functions: Mapping[str, NativeFunction]) -> None:
        self._functions = dict(functions)

    def __getattr__(self, name: str) -> NativeFunction:
        """The function of that name."""
        functions: dict[str, NativeFunction] = self.__dict__.get("_functions", {})
        if name not in functions:
            raise AttributeError(f"no function {name!r} was declared; there are {', '.join(functions)}")
        return functions[name]

    def __dir__(self) -> list[str]:
        """Names of the functions."""
        return sorted(self._functions)


def load(
    source: str, functions: Mapping[str, str], *, language: str | None = None, flags: Sequence[str] = ()
) -> NativeLibrary:
    """Compile `source` and return its functions, ready to be called.

    Args:
        source: C++ or CUDA source. `<cstdint>` is included, and the CUDA runtime's header in CUDA sources.
        functions: Name of each function to call, with its C parameters: `{"scale": "const float* x, float* y, int64_t
            n"}`. Parameters are pointers to, or values of: float, double, bool, int, int64_t and the other fixed-width
            integers, size_t; pointers also to void, __half and __nv_bfloat16; and cudaStream_t, which a call leaves
            out. language: `cuda` or `cpp`. Default: `cuda` where the source contains `__global__`, else `cpp`. flags:
            Further compiler flags, for instance `("-ffast-math",)` or `("--use_fast_math",)`.
    Raises:
        NativeCompileError: It does not compile, or does not define a function as declared.
        ValueError: A declaration that cannot be read, or an unknown language.
    """
    if language is None:
        language = "cuda" if "__global__" in source else "cpp"
    if language not in {"cuda", "cpp"}:
        raise ValueError(f"language must be 'cuda' or 'cpp', got {language!r}")
    on_cuda = language == "cuda"
    if not functions:
        raise ValueError("functions must name at least one function")
    parsed = {name: parse_parameters(name, text, on_cuda=on_cuda) for name, text in functions.items()}
    declarations = "".join(f'extern "C" void {name}({text});\n' for name, text in functions.items())
    toolchain = nvcc_toolchain(_capability()) if on_cuda else cxx_toolchain()
    path = build_library(toolchain, source, declarations + (_TAKE_ERROR_SOURCE if on_cuda else ""), flags)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise NativeCompileError(bounded(f"the library cannot be loaded: {_without_path(error, str(path))}")) from None
    loaded = {name: _function(library, name, parameters, on_cuda) for name, parameters in parsed.items()}
    return NativeLibrary(loaded)


def _function(library: ctypes.CDLL, name: str, parameters: Sequence[Parameter], on_cuda: bool) -> NativeFunction:
    symbol = getattr(library, name, None)
    if symbol is None:
        raise NativeCompileError(f'the source does not define extern "C" void {name}(...)')
    symbol.restype = None
    symbol.argtypes = [parameter.ctype for parameter in parameters]
    function = NativeFunction(name, parameters, symbol, on_cuda)
    if on_cuda:
        take_error = getattr(library, _TAKE_ERROR)
        take_error.restype = ctypes.c_char_p
        take_error.argtypes = []
        function.check_launches_with(take_error)
    return function


def _pointer(parameter: Parameter, argument: object, on_cuda: bool, where: str) -> int | None:
    if argument is None or (isinstance(argument, int) and not isinstance(argument, bool)):
        return argument
    if not hasattr(argument, "data_ptr"):
        raise TypeError(f"{where}: expected a tensor, None or an address, got {type(argument).__name__}")
    tensor = cast(_Tensor, argument)
    if not parameter.accepts(tensor.dtype):
        raise TypeError(f"{where}: expected a tensor of {parameter.element_names}, got {tensor.dtype}")
    if tensor.is_cuda != on_cuda:
        expected, got = ("CUDA", "CPU") if on_cuda else ("CPU", "CUDA")
        raise ValueError(f"{where}: expected a {expected} tensor, got a {got} one")
    if not tensor.is_contiguous():
        raise ValueError(
            f"{where}: the tensor is not contiguous; pass x.contiguous(), or x.data_ptr() and its strides as numbers"
        )
    return tensor.data_ptr()


def _capability() -> tuple[int, int]:
    import torch  # here, so that a C++ source needs no torch

    capability: tuple[int, int] = torch.cuda.get_device_capability()
    return capability


def _current_stream() -> int:
    import torch  # here, so that a C++ source needs no torch; loaded long before the first call

    stream: int = torch.cuda.current_stream().cuda_stream
    return stream


def _without_path(error: OSError, path: str) -> str:
    return str(error).replace(path, "library")
