"""The package as others find it: manifest, public names, and how little it imports."""

import subprocess
import sys
from pathlib import Path

import yaml

import kernel_env

ROOT = Path(__file__).parents[2]


def test_the_manifest_in_the_package_is_the_one_in_the_root() -> None:
    """OpenEnv's tools read the root's, AutoEnv reads the package's; wheels do not carry links."""
    assert (ROOT / "openenv.yaml").read_bytes() == (ROOT / "kernel_env" / "openenv.yaml").read_bytes()


def test_the_manifest_names_things_that_exist() -> None:
    manifest = yaml.safe_load((ROOT / "openenv.yaml").read_text())
    assert hasattr(kernel_env, manifest["action"])
    assert hasattr(kernel_env, manifest["observation"])
    assert manifest["name"] == "kernel_env"
    assert manifest["validation"]["reward"]["range"] == [0.0, 3.0]


def test_every_public_name_can_be_imported() -> None:
    for name in kernel_env.__all__:
        assert getattr(kernel_env, name) is not None
    assert set(kernel_env.__all__) <= set(dir(kernel_env))


def test_the_package_alone_imports_neither_openenv_nor_torch() -> None:
    """A submission imports `kernel_env.native`; OpenEnv would cost it five seconds."""
    code = "import sys, kernel_env; assert not {'openenv', 'torch', 'pydantic', 'server'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)
