"""Builds the two allocator libraries candidates load. Trusted: runs in the zygote before any submission exists."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import torch

BUILD_TIMEOUT_S = 120.0


class BuildFailed(Exception):
    """The host's compiler could not build one of our own files."""


def build_arena(device_kind: str, cache_dir: Path) -> Path:
    """Shared library with the allocator for `device_kind`, built once per torch version and source.

    Raises:
        BuildFailed: No compiler, or it refused our source.
    """
    here = Path(__file__).parent
    include = Path(torch.__file__).parent / "include"
    libraries = Path(torch.__file__).parent / "lib"
    if device_kind == "cuda":
        source = here / "arena_cuda.c"
        command = ["gcc", "-O2", "-shared", "-fPIC", str(source)]
    else:
        source = here / "arena_cpu.cpp"
        command = [
            "g++",
            "-O2",
            "-std=c++20",
            "-shared",
            "-fPIC",
            f"-I{include}",
            str(source),
            f"-L{libraries}",
            "-lc10",
        ]
    key = hashlib.sha256(source.read_bytes() + torch.__version__.encode()).hexdigest()[:16]
    target = cache_dir / f"{source.stem}-{key}.so"
    if target.exists():
        return target
    cache_dir.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=cache_dir, suffix=".so")
    os.close(handle)
    try:
        done = subprocess.run(
            [*command, "-o", partial], capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildFailed(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise BuildFailed(f"{command[0]} failed on {source.name}:\n{done.stderr[-4000:]}")
    os.chmod(partial, 0o755)  # noqa: S103 candidates of other uids load it
    os.replace(partial, target)
    return target
