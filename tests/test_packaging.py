"""What pyproject.toml promises about the distribution, held against the tree and against a wheel built from it."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINNED = re.compile(r"^[A-Za-z0-9_.-]+==[A-Za-z0-9_.!]+$")


def _package_folders() -> set[str]:
    """Dotted names, as installed, of every folder that holds Python files."""
    folders = {path.parent.relative_to(ROOT) for top in ("kernel_env", "server") for path in (ROOT / top).rglob("*.py")}
    dotted = {".".join(folder.parts) for folder in folders}
    return {f"kernel_env.{name}" if name.partition(".")[0] == "server" else name for name in dotted}


def test_every_package_of_the_tree_is_listed() -> None:
    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) == _package_folders()


def test_client_declares_what_it_imports() -> None:
    """The light client must not lean on what the server extra happens to install."""
    declared = {re.split(r"[<>=!;\[ ]", need)[0] for need in PYPROJECT["project"]["dependencies"]}
    distribution = {"openenv": "openenv-core"}
    imported = set()
    for path in (ROOT / "kernel_env").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add((node.module or "").partition(".")[0])
    foreign = imported - sys.stdlib_module_names - {"kernel_env"}

    assert {distribution.get(name, name) for name in foreign} <= declared


def test_constraints_pin_exact_versions_and_name_no_index() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()

    assert [line for line in lines if not line.startswith("#") and not PINNED.match(line)] == []


def test_constraints_hold_a_set_that_torchs_cuda_build_accepts() -> None:
    """That of torch 2.13.0 requires triton 3.7.1 and cuda-toolkit 13.0.3 exactly, and cuda-bindings from 13.0.3 on."""
    lines = set((ROOT / "constraints.txt").read_text().splitlines())

    assert {"torch==2.13.0", "triton==3.7.1", "cuda-toolkit==13.0.3", "cuda-bindings==13.0.3"} <= lines


@pytest.mark.slow
def test_wheel_holds_the_server_inside_the_package_and_no_global_module(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    source = tmp_path / "source"
    subprocess.run([sys.executable, ROOT / "scripts" / "stage.py", source], check=True, capture_output=True)
    subprocess.run([*build, "--wheel-dir", tmp_path, source], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())

    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"kernel_env"}
    for path in (path for top in ("kernel_env", "server") for path in (ROOT / top).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            inside = path.relative_to(ROOT)
            assert str(inside if inside.parts[0] == "kernel_env" else "kernel_env" / inside) in names
