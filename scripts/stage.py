#!/usr/bin/env python3
"""Stage the tree in the form that `openenv push` and `openenv build` accept: stage.py DIR.

They look for `__init__.py`, `client.py` and `models.py` in the root of the environment. Those three are written into
the staged copy and nowhere else, since a root `__init__.py` in the checkout would be picked up by test runners.
"""

import shutil
import sys
from pathlib import Path

STAGED = (
    "CHANGELOG.md",
    "Dockerfile",
    "LICENSE",
    "README.md",
    "constraints.txt",
    "examples",
    "kernel_env",
    "openenv.yaml",
    "pyproject.toml",
    "server",
)
"""Everything the image needs; tests and tooling stay behind."""

ENTRY_FILES = {
    "__init__.py": "# The environment's root as OpenEnv expects it. The package is kernel_env.\n",
    "client.py": "from kernel_env.client import KernelEnv\n\n__all__ = ['KernelEnv']\n",
    "models.py": (
        "from kernel_env.models import KernelAction, KernelObservation, KernelState\n\n"
        "__all__ = ['KernelAction', 'KernelObservation', 'KernelState']\n"
    ),
}


def stage(root: Path, target: Path) -> None:
    """`target` holds a fresh copy of the environment in OpenEnv's layout.

    Args:
        root: The checkout.
        target: Folder to make. One that exists is replaced, if an earlier run made it.
    Raises:
        FileNotFoundError: Something of the environment is missing in `root`.
        FileExistsError: `target` exists and was not made here.
    """
    if target.exists():
        if any(target.iterdir()) and not all((target / name).exists() for name in ENTRY_FILES):
            raise FileExistsError(f"{target} was not made by this program; it is left alone")
        shutil.rmtree(target)
    target.mkdir(parents=True)
    for name in STAGED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy2(source, target / name)
    for name, text in ENTRY_FILES.items():
        (target / name).write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    stage(Path(__file__).resolve().parent.parent, Path(sys.argv[1]))
    print(f"staged in {sys.argv[1]}")
