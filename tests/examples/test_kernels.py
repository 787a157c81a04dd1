"""The example kernels are right: those in `examples/kernels` and those a prompt shows."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kernel_env import native
from kernel_env.terms import Language, Precision
from server.evaluator.results import Submission
from server.evaluator.static_checks import check
from server.evaluator.submission_text import detect_language
from server.tasks.registry import load_tasks

ROOT = Path(__file__).parents[2]
KERNELS = sorted((ROOT / "examples" / "kernels").glob("*.py"))
SHOWN = sorted(
    path
    for path in (ROOT / "server" / "tasks" / "examples").glob("*_*.py")
    if path.stem.rpartition("_")[2] in set(Language)
)
TASKS = load_tasks()

# Largest error in units of the reference's root mean square. TF32 rounds factors to 11 bits, so a product of random
# numbers is off by about 2^-11 of its size, and the worst of millions by some times that.
BOUNDS = {Precision.IEEE: 1e-4, Precision.TF32: 1e-2}
INTERPRETER_DEADLINE_S = 120


def language_of(path: Path) -> Language:
    return Language(path.stem.rpartition("_")[2])


def operator_of(path: Path) -> str:
    return path.stem.removesuffix(f"_{language_of(path).value}").removesuffix("_load_inline")


def reference_of(path: Path, device_kind: str = "cpu") -> str:
    if path.parent.name == "examples":
        return (path.parent / f"{operator_of(path)}_reference.py").read_text()
    return TASKS.get(operator_of(path)).source_for(device_kind)


def bound_of(path: Path) -> float:
    shown = path.parent.name == "examples"
    return BOUNDS[Precision.IEEE if shown else TASKS.get(operator_of(path)).precision]


def of_language(language: Language, *, slow: bool = False) -> list[Path]:
    paths = (path for path in (*KERNELS, *SHOWN) if language_of(path) is language)
    return [path for path in paths if ("load_inline" in path.stem) == slow]


def comparison() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compare", Path(__file__).parent / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["compare"] = module  # a dataclass looks its module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def interpreted() -> dict[str, tuple[bool, float]]:
    """Every Triton kernel in Triton's interpreter, in one child: the switch must be set before triton is imported."""
    sources = {str(path.relative_to(ROOT)): reference_of(path) for path in of_language(Language.TRITON)}
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "compare.py")],
        input=json.dumps(sources),
        env=environment,
        capture_output=True,
        text=True,
        timeout=INTERPRETER_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {kernel: (same, error) for kernel, same, error in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("path", of_language(Language.TRITON), ids=lambda path: path.stem)
def test_triton_kernel_is_right_in_the_interpreter(path: Path, interpreted: dict[str, tuple[bool, float]]) -> None:
    same_form, error = interpreted[str(path.relative_to(ROOT))]
    assert same_form
    assert error < bound_of(path)


@pytest.mark.parametrize("path", of_language(Language.CPP), ids=lambda path: path.stem)
def test_cpp_kernel_is_right(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    compared = comparison().compare(path, reference_of(path))
    assert compared.same_form
    assert compared.error < bound_of(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", of_language(Language.CPP, slow=True), ids=lambda path: path.stem)
def test_cpp_kernel_built_by_torch_is_right(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    compared = comparison().compare(path, reference_of(path))
    assert compared.same_form
    assert compared.error < bound_of(path)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on the path")
@pytest.mark.parametrize("path", of_language(Language.CUDA), ids=lambda path: path.stem)
def test_cuda_kernel_compiles(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    monkeypatch.setattr(native, "_capability", lambda: (9, 0))
    assert hasattr(comparison().load(path), "ModelNew")


@pytest.mark.parametrize("path", [*KERNELS, *SHOWN], ids=lambda path: path.stem)
def test_kernel_passes_the_static_stage_in_its_own_language(path: Path) -> None:
    code = path.read_text()
    language = language_of(path)
    offered = (Language.TRITON, Language.CUDA) if language is Language.CUDA else (Language.CPP, Language.TRITON)
    assert detect_language(code, offered, offered[0]) is language
    assert check(Submission(code, language)) is None


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_kernel_says_what_it_is_in_one_line(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first.startswith('"""')
    assert first.endswith('."""')


@pytest.mark.gpu
@pytest.mark.parametrize(
    "path",
    [*of_language(Language.TRITON), *of_language(Language.CUDA), *of_language(Language.CUDA, slow=True)],
    ids=lambda path: path.stem,
)
def test_kernel_is_right_at_full_size(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    compared = comparison().compare(path, reference_of(path, "cuda"), "cuda")
    assert compared.same_form
    assert compared.error < bound_of(path)
