"""Which paths a candidate needs, and whether another user can get to them. Trusted code."""

import os
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
    return SYSTEM + tuple(sorted(path for path in own | python | toolkit | libraries if _is_wanted(path)))


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
