"""What the zygote builds for Triton is built once, and a version of Triton that does otherwise is left alone."""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from triton.backends.nvidia import driver

from server.candidate.warm_triton import QUICK, warm_triton

UTILS = "int utils;"


class Builder:
    """Stands in for Triton's compiler of C modules."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, list[str]]] = []
        self.folders: list[str | None] = []

    def __call__(self, src: str, name: str, ccflags: list[str] | None = None, **_: Any) -> ModuleType:
        self.calls.append((name, src, list(ccflags or ())))
        self.folders.append(os.environ.get("TRITON_CACHE_DIR"))
        return ModuleType(name)


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    """In the place of the real one, which `monkeypatch` puts back."""
    made = Builder()
    monkeypatch.setattr(driver, "compile_module_from_src", made)
    monkeypatch.setattr(driver, "CudaUtils", lambda: driver.compile_module_from_src(src=UTILS, name="cuda_utils"))
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    return made


def test_module_is_built_before_the_fork_and_not_again(builder: Builder, tmp_path: Path) -> None:
    warm_triton(tmp_path)
    assert builder.calls == [("cuda_utils", UTILS, [QUICK])]
    first = driver.compile_module_from_src(src=UTILS, name="cuda_utils", library_dirs=["/lib"])
    assert first is driver.compile_module_from_src(src=UTILS, name="cuda_utils")
    assert len(builder.calls) == 1


def test_launchers_are_built_once_per_source_and_quickly(builder: Builder, tmp_path: Path) -> None:
    warm_triton(tmp_path)
    one = driver.compile_module_from_src(src="int a;", name="launcher", ccflags=["-DX"])
    other = driver.compile_module_from_src(src="int b;", name="launcher")
    assert one is not other
    assert [flags for _, _, flags in builder.calls[1:]] == [["-DX", QUICK], [QUICK]]


def test_its_files_are_of_the_zygote_and_gone_afterwards(builder: Builder, tmp_path: Path) -> None:
    warm_triton(tmp_path)
    assert builder.folders[0] is not None
    assert Path(builder.folders[0]).parent == tmp_path
    assert list(tmp_path.iterdir()) == []
    assert "TRITON_CACHE_DIR" not in os.environ


def test_failure_leaves_triton_as_it_was(
    builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("libcuda.so cannot be found")

    monkeypatch.setattr(driver, "CudaUtils", fail)
    warm_triton(tmp_path)
    assert driver.compile_module_from_src is builder
    assert "libcuda.so cannot be found" in caplog.text
    assert "TRITON_CACHE_DIR" not in os.environ
