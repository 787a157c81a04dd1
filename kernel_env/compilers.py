"""Builds a shared library from one C++ or CUDA source with g++ or nvcc. Runs inside the sandbox, beside a submission.

It decides the command line, where the library is kept, and how much of the compiler's output a caller sees. It knows
nothing of tensors or calls (`native.py`), and imports no torch: PyTorch's headers are what makes its own extension
builds take 20 s or more, and a source that takes data pointers needs none of them.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_ERROR_BYTES = 8192
"""Compiler output kept in an error. The first errors matter; the rest mostly follow from them."""

COMPILE_TIMEOUT_S = 600.0
"""Longest compiler run. Above what an evaluation allows, so that its own limit decides first."""

_SOURCE_NAME = "submission"
_CXX_FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared")
_NVCC_FLAGS = ("-std=c++17", "-O3", "-Xcompiler", "-fPIC", "-shared", "--default-stream", "per-thread")
_FIRST_ARCH_WITH_FAMILY_FEATURES = 9
LIBRARY_FOLDER = "kernel_env_native"
"""Below `$TORCH_EXTENSIONS_DIR`: where libraries are kept."""


class NativeCompileError(RuntimeError):
    """The source does not compile, or does not define what was asked for. Lines are counted as in the source."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler and the part of its command line that does not depend on the source."""

    command: tuple[str, ...]
    suffix: str
    """File suffix the compiler takes the language from."""


def cxx_toolchain() -> Toolchain:
    """The C++ compiler: `$CXX`, else the first of g++, c++, clang++ on the path.

    Raises:
        NativeCompileError: There is none.
    """
    candidates = [os.environ.get("CXX", ""), "g++", "c++", "clang++"]
    compiler = next((found for name in candidates if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise NativeCompileError("no C++ compiler: neither $CXX nor g++, c++ or clang++ is on the path")
    return Toolchain((compiler, *_CXX_FLAGS), ".cpp")


def nvcc_toolchain(capability: tuple[int, int]) -> Toolchain:
    """nvcc for one compute capability: from `$CUDA_HOME`, the path, or `/usr/local/cuda`.

    Raises:
        NativeCompileError: There is none.
    """
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", "")]
    candidates = [str(Path(home) / "bin" / "nvcc") for home in homes if home]
    candidates += ["nvcc", "/usr/local/cuda/bin/nvcc"]
    compiler = next((found for name in candidates if (found := shutil.which(name))), None)
    if compiler is None:
        raise NativeCompileError("no nvcc: it is neither below $CUDA_HOME nor on the path")
    major, minor = capability
    # The "a" variant unlocks what exists on exactly this architecture (wgmma, TMA), and the library runs nowhere else.
    arch = f"{major}{minor}{'a' if major >= _FIRST_ARCH_WITH_FAMILY_FEATURES else ''}"
    return Toolchain((compiler, *_NVCC_FLAGS, "-gencode", f"arch=compute_{arch},code=sm_{arch}"), ".cu")


def build_library(toolchain: Toolchain, source: str, epilogue: str, flags: Sequence[str]) -> Path:
    """Shared library built from `source` followed by `epilogue`, or the one an equal call has built before.

    It lies below `$TORCH_EXTENSIONS_DIR`, or in a private temporary folder where that is not set.

    Args:
        epilogue: Code of ours. Errors in it are reported under the name `functions`.
        flags: Added at the end of the command line.
    Raises:
        NativeCompileError: The compiler failed, or ran too long.
    """
    unit = f'#include <cstdint>\n#line 1 "{_SOURCE_NAME}"\n{source}\n#line 1 "functions"\n{epilogue}'
    command = (*toolchain.command, *flags)
    folder = _library_folder()
    library = folder / f"{_key(unit, command)}.so"
    if library.is_file():
        return library
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as build:
        unit_path = Path(build) / f"unit{toolchain.suffix}"
        unit_path.write_text(unit, encoding="utf-8", errors="replace")
        built = Path(build) / "unit.so"
        _compile((*command, "-o", str(built), str(unit_path)), Path(build))
        built.replace(library)  # atomic: another process sees the whole library or none
    return library


def bounded(text: str) -> str:
    """`text`, cut to `MAX_ERROR_BYTES` of UTF-8 with a note on how much is missing."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= MAX_ERROR_BYTES:
        return text
    note = f"\n... ({len(encoded) - MAX_ERROR_BYTES} bytes or more left out)"
    return encoded[: MAX_ERROR_BYTES - len(note)].decode("utf-8", "ignore") + note


_private_folder: list[Path] = []


def _library_folder() -> Path:
    root = os.environ.get("TORCH_EXTENSIONS_DIR")
    if root:
        folder = Path(root) / LIBRARY_FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    if not _private_folder:
        # mkdtemp gives mode 0700: nobody else can put a library where this process will load it.
        _private_folder.append(Path(tempfile.mkdtemp(prefix=f"{LIBRARY_FOLDER}-")))
    return _private_folder[0]


def _key(unit: str, command: Sequence[str]) -> str:
    # The host's name is part of it: -march=native makes a library that another host of a shared folder may not run.
    parts = [unit, platform.node(), *command]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _compile(command: Sequence[str], build: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            cwd=build,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMPILE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NativeCompileError(f"the compiler did not end within {COMPILE_TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise NativeCompileError(f"the compiler could not be started: {error.strerror}") from error
    if done.returncode != 0:
        text = done.stdout.decode("utf-8", "replace").replace(f"{build}{os.sep}", "").strip()
        raise NativeCompileError(bounded(text or f"the compiler failed with exit status {done.returncode}"))
