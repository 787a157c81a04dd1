"""Which paths a candidate needs, and whether another user can get to them. Trusted code."""

import os
import shutil
import site
import stat
import sys
from pathlib import Path

import kernel_env

PLAIN_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys")
"""Libraries, compilers, name lookup, and what CUDA reads about the machine. Nothing where users keep files."""


def default_readable() -> tuple[str, ...]:
    """System directories, the Python installation with its packages, this package, and the CUDA toolkit."""
    own = {str(Path(__file__).resolve().parents[1]), *(str(Path(part).resolve()) for part in kernel_env.__path__)}
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages()}
    toolkit = {os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)}
    libraries = {path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path.startswith("/")}
    root = str(Path(kernel_env.__file__).resolve().parents[1])
    # PYTHONPATH: a module found there before the fork and closed afterwards would be an error, not merely absent.
    added = {str(Path(entry).resolve()) for entry in sys.path if entry.startswith("/")} - {root}
    wanted = own | python | toolkit | libraries | added | _toolchains()
    return SYSTEM + tuple(sorted(path for path in wanted if _is_wanted(path)))


def _toolchains() -> set[str]:
    """Where the compilers really are: a name on the PATH may be a link, and `CC` may name one that is not on it."""
    names = ["gcc", "g++", "cc", "c++", "nvcc", "ninja", "ld", "as"]
    names += [os.environ[name] for name in ("CC", "CXX", "CUDAHOSTCXX") if os.environ.get(name)]
    found = (shutil.which(name) for name in names)
    binaries = {Path(path).resolve().parent for path in found if path is not None}
    return {str(binary.parent) for binary in binaries if binary.name == "bin" and len(binary.parts) > 2}


def blocking_directory(path: str) -> str | None:
    """First directory on the way to `path`, itself included, that keeps other users out; None if there is none."""
    resolved = Path(path).resolve()
    for part in (*reversed(resolved.parents), resolved):
        try:
            mode = part.stat().st_mode
        except FileNotFoundError:
            return None
        needed = stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
        if not mode & needed:
            return str(part)
    return None


def _is_wanted(path: str) -> bool:
    """Whether a rule for the path adds something. The root directory would open everything."""
    return path not in {"", "/"} and os.path.exists(path) and not path.startswith("/usr/")
