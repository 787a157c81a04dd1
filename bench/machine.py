"""What a measurement ran on, for the files that hold it. Opens no CUDA context."""

import importlib.metadata
import os
import platform
import subprocess
import time


def describe() -> dict[str, object]:
    """Machine and versions."""
    versions = {}
    for name in ("torch", "triton", "openenv-core", "numpy"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "absent"
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu_cores": os.cpu_count(),
        "python": platform.python_version(),
        "gpu": _query("name"),
        "driver": _query("driver_version"),
        **versions,
    }


def _query(field: str) -> str:
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "none"
    return done.stdout.splitlines()[0].strip() if done.stdout else "none"
