"""The helper for native kernels, with the real compilers."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_env import compilers, native
from kernel_env.signature import parse_parameters

SOURCE = """
extern "C" void scale(const float* x, float* y, int64_t n, double factor) {
    for (int64_t i = 0; i < n; ++i) y[i] = float(factor) * x[i];
}
extern "C" void fill(int32_t* y, int count, int32_t value, bool negate) {
    for (int i = 0; i < count; ++i) y[i] = negate ? -value : value;
}
extern "C" void is_null(const void* p, uint8_t* y) { *y = p == nullptr; }
"""
FUNCTIONS = {
    "scale": "const float* x, float* y, int64_t n, double factor",
    "fill": "int32_t* y, int count, int32_t value, bool negate",
    "is_null": "const void* p, uint8_t* y",
}
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on the path")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))


@pytest.fixture(scope="module")
def kernels() -> native.NativeLibrary:
    return native.load(SOURCE, FUNCTIONS)


def test_tensors_and_numbers_reach_the_function(kernels: native.NativeLibrary) -> None:
    x = torch.randn(1000)
    y = torch.empty_like(x)
    kernels.scale(x, y, x.numel(), 2)
    assert torch.equal(y, 2 * x)


def test_integers_and_booleans_reach_the_function(kernels: native.NativeLibrary) -> None:
    y = torch.empty(5, dtype=torch.int32)
    kernels.fill(y, 5, 7, True)
    assert y.tolist() == [-7] * 5


def test_none_is_a_null_pointer(kernels: native.NativeLibrary) -> None:
    y = torch.empty(1, dtype=torch.uint8)
    kernels.is_null(None, y)
    assert y.item() == 1
    kernels.is_null(y, y)
    assert y.item() == 0


def test_an_address_is_passed_unchecked(kernels: native.NativeLibrary) -> None:
    x = torch.ones(4, 4).t()
    y = torch.empty(16)
    kernels.scale(x.data_ptr(), y, 16, 3.0)
    assert torch.equal(y, torch.full((16,), 3.0))


def test_parameters_of_a_module_are_accepted(kernels: native.NativeLibrary) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    y = torch.empty(3)
    kernels.scale(weight, y, 3, 2.0)
    assert torch.equal(y, torch.full((3,), 2.0))


X = torch.zeros(4)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((X, X, 4), TypeError, r"scale takes 4 arguments .*, got 3"),
        ((X, X, 4, 1.0, 1), TypeError, r"got 5"),
        ((X.double(), X, 4, 1.0), TypeError, r"'const float\* x'.*expected .*float32, got torch.float64"),
        ((X.reshape(2, 2).t(), X, 4, 1.0), ValueError, r"not contiguous.*\.contiguous\(\)"),
        (([1.0], X, 4, 1.0), TypeError, r"expected a tensor, None or an address, got list"),
        ((True, X, 4, 1.0), TypeError, r"got bool"),
        ((X, X, 4.0, 1.0), TypeError, r"'int64_t n'.*expected a number, got float"),
        ((X, X, torch.tensor(4), 1.0), TypeError, r"expected a number, got a tensor"),
        ((X, X, 4, "2"), TypeError, r"'double factor'.*got str"),
        ((X, X, 2**63, 1.0), ValueError, r"9223372036854775808 does not fit int64_t"),
    ],
)
def test_wrong_argument_is_refused_by_name(
    kernels: native.NativeLibrary, arguments: tuple[Any, ...], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        kernels.scale(*arguments)


def test_integer_is_not_cut_off(kernels: native.NativeLibrary) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        kernels.fill(torch.empty(1, dtype=torch.int32), 1, 2**31, False)


def test_undeclared_function_names_the_declared_ones(kernels: native.NativeLibrary) -> None:
    with pytest.raises(AttributeError, match="scale, fill, is_null"):
        kernels.missing  # noqa: B018


def test_compile_error_counts_lines_as_in_the_source() -> None:
    with pytest.raises(native.NativeCompileError, match=r"submission:3:\d+: error: .*nowhere"):
        native.load('\nextern "C" void f(float* x) {\n    x[0] = nowhere;\n}\n', {"f": "float* x"})


def test_compile_error_holds_no_path(tmp_path: Path) -> None:
    with pytest.raises(native.NativeCompileError) as failed:
        native.load('extern "C" void f() { nowhere(); }', {"f": ""})
    assert str(tmp_path) not in str(failed.value)


def test_compile_error_is_bounded() -> None:
    source = "".join(f"int f{i}() {{ return nowhere{i}; }}\n" for i in range(500))
    with pytest.raises(native.NativeCompileError) as failed:
        native.load(source, {"f": ""})
    assert len(str(failed.value).encode()) <= compilers.MAX_ERROR_BYTES
    assert "nowhere0" in str(failed.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('extern "C" void f(double* x) {}', "conflicting declaration"),
        ("void f(float* x) {}", "linkage"),
        ('extern "C" void g(float* x) {}', r"does not define extern \"C\" void f"),
        ('void missing();\nextern "C" void f(float* x) { missing(); }', "cannot be loaded|undefined"),
    ],
)
def test_source_that_does_not_fit_its_declaration_is_refused(source: str, said: str) -> None:
    with pytest.raises(native.NativeCompileError, match=said):
        native.load(source, {"f": "float* x"}, flags=("-Wl,-z,now",))


def test_equal_source_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    native.load(SOURCE, FUNCTIONS)
    monkeypatch.setattr("kernel_env.compilers.subprocess.run", None)
    native.load(SOURCE, FUNCTIONS)


def test_flags_reach_the_compiler() -> None:
    source = 'extern "C" void f(int32_t* y) { *y = VALUE; }'
    y = torch.zeros(1, dtype=torch.int32)
    native.load(source, {"f": "int32_t* y"}, flags=("-DVALUE=5",)).f(y)
    assert y.item() == 5


def test_without_a_folder_it_builds_in_a_private_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR")
    native.load('extern "C" void f() {}', {"f": "void"}).f()
    folder = compilers._private_folder[0]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_missing_compiler_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel_env.compilers.shutil.which", {}.get)
    with pytest.raises(native.NativeCompileError, match=r"no C\+\+ compiler"):
        native.load('extern "C" void f() {}', {"f": ""})
    with pytest.raises(native.NativeCompileError, match="no nvcc"):
        compilers.nvcc_toolchain((9, 0))


@pytest.mark.parametrize(
    "text",
    ["float", "const float* x", "float *restrict x, int n", "unsigned int n", "long long n", "int", "size_t n, bool b"],
)
def test_declaration_is_read(text: str) -> None:
    assert len(parse_parameters("f", text, on_cuda=False)) == text.count(",") + 1


@pytest.mark.parametrize(
    "text", ["float** x", "std::vector<float> x", "float x[3]", "foo x", "cudaStream_t s", "float* x y", ","]
)
def test_declaration_that_is_not_offered_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^f: "):
        parse_parameters("f", text, on_cuda=False)


@pytest.mark.parametrize("name", ["f(", "", "1f", "a b"])
def test_name_that_is_no_c_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a C function"):
        parse_parameters(name, "", on_cuda=False)


def test_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="'cuda' or 'cpp'"):
        native.load("", {"f": ""}, language="rust")


def test_importing_it_imports_neither_torch_nor_the_client() -> None:
    code = "import sys; from kernel_env import native; sys.exit('torch' in sys.modules or 'openenv' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


CUDA_SOURCE = """
__global__ void fill_kernel(float* y, int64_t n) {
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 1.0f;
}
extern "C" void fill(float* y, int64_t n, cudaStream_t stream) {
    fill_kernel<<<(n + 255) / 256, 256, 0, stream>>>(y, n);
}
extern "C" void no_blocks(float* y) { fill_kernel<<<0, 256>>>(y, 1); }
"""
CUDA_FUNCTIONS = {"fill": "float* y, int64_t n, cudaStream_t stream", "no_blocks": "float* y"}


@needs_nvcc
def test_cuda_source_compiles_and_a_refused_launch_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_capability", lambda: (9, 0))
    kernels = native.load(CUDA_SOURCE, CUDA_FUNCTIONS)
    with pytest.raises(RuntimeError, match="CUDA refused a launch in no_blocks"):
        kernels.no_blocks(None)


@needs_nvcc
def test_cuda_compile_error_counts_lines_as_in_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_capability", lambda: (9, 0))
    with pytest.raises(native.NativeCompileError, match=r"submission\(2\): error"):
        native.load("__global__ void k() {\n    nowhere();\n}\n", {"k": ""})


@needs_nvcc
def test_cpu_tensor_is_refused_by_a_cuda_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_capability", lambda: (9, 0))
    kernels = native.load(CUDA_SOURCE, CUDA_FUNCTIONS)
    with pytest.raises(ValueError, match="expected a CUDA tensor, got a CPU one"):
        kernels.no_blocks(torch.zeros(1))


@needs_nvcc
def test_stream_parameter_is_filled_in_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_capability", lambda: (9, 0))
    monkeypatch.setattr(native, "_current_stream", lambda: 2)
    received: list[object] = []
    parameters = parse_parameters("fill", CUDA_FUNCTIONS["fill"], on_cuda=True)
    function = native.NativeFunction("fill", parameters, lambda *arguments: received.extend(arguments), on_cuda=True)
    function(None, 4)
    assert received == [None, 4, 2]
    assert parameters[2].ctype is ctypes.c_void_p


@pytest.mark.gpu
def test_launch_lands_on_the_current_stream_and_can_be_captured() -> None:
    kernels = native.load(CUDA_SOURCE, CUDA_FUNCTIONS)
    y = torch.zeros(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    kernels.fill(y, 1000)
    y.zero_()
    with torch.cuda.graph(graph):
        kernels.fill(y, 1000)
    torch.cuda.synchronize()
    assert y.sum().item() == 0
    graph.replay()
    torch.cuda.synchronize()
    assert y.sum().item() == 1000


@pytest.mark.gpu
def test_launch_without_a_stream_is_captured_on_the_per_thread_stream() -> None:
    source = (
        CUDA_SOURCE + 'extern "C" void plain(float* y, int64_t n) { fill_kernel<<<(n + 255) / 256, 256>>>(y, n); }\n'
    )
    kernels = native.load(source, {"plain": "float* y, int64_t n"})
    y = torch.zeros(1000, device="cuda")
    kernels.plain(y, 1000)
    torch.cuda.synchronize()
    y.zero_()
    torch.cuda.synchronize()
    per_thread = torch.cuda.ExternalStream(2)  # type: ignore[no-untyped-call]  # cudaStreamPerThread
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=per_thread):
        kernels.plain(y, 1000)
    torch.cuda.synchronize()
    assert y.sum().item() == 0
    graph.replay()
    torch.cuda.synchronize()
    assert y.sum().item() == 1000
