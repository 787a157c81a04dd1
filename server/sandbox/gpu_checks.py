"""Settings of NVIDIA devices under which times would be wrong. Trusted code; asks NVML in a process of its own.

A program as well: `python -m <package>.gpu_checks [DEVICE...]` prints one line per finding.
Covered: the MPS daemon (contexts run side by side, so that a probe sees no other candidate), exclusive compute modes (a
candidate could not share the device with the judge), and a display (somebody else's frames in our times).
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import program

TIMEOUT_S = 30.0
COMPUTE_MODE_DEFAULT = 0

Finding = tuple[str, str, str]
"""Name, state and detail of a check; `doctor` makes it one."""


def run(visible_devices: Sequence[str]) -> list[Finding]:
    """Check MPS, and the devices through NVML."""
    findings = [_mps()]
    try:
        done = subprocess.run(
            program.command("gpu_checks", *visible_devices),
            env=program.environment() | {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        findings += [(str(name), str(state), str(detail)) for name, state, detail in json.loads(done.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError):
        findings.append(("nvml", "missing", "compute mode and display cannot be checked: NVML does not answer"))
    return findings


def main() -> None:
    """Print the findings of NVML as JSON."""
    sys.stdout.write(json.dumps(_devices(sys.argv[1:])))


def _mps() -> Finding:
    """No MPS daemon, and no pipe directory that would connect a context to one elsewhere."""
    pipes = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")  # noqa: S108 the driver's default
    if os.path.exists(f"{pipes}/control"):
        return ("mps", "refused", "an MPS pipe directory exists: stop the MPS daemon")
    for entry in Path("/proc").iterdir():
        try:
            name = (entry / "comm").read_bytes() if entry.name.isdecimal() else b""
        except OSError:
            continue
        if name.startswith(b"nvidia-cuda-mps"):
            return ("mps", "refused", "an MPS daemon runs on this host: stop it")
    return ("mps", "ok", "no MPS daemon")


def _devices(visible: Sequence[str]) -> list[Finding]:
    """Compute mode and display of the named devices, or of all."""
    import pynvml  # noqa: PLC0415 absent on a host without NVIDIA devices

    pynvml.nvmlInit()
    by_index, by_uuid = pynvml.nvmlDeviceGetHandleByIndex, pynvml.nvmlDeviceGetHandleByUUID
    names = visible or [str(index) for index in range(pynvml.nvmlDeviceGetCount())]
    handles = [by_index(int(name)) if name.isdecimal() else by_uuid(name) for name in names]
    findings: list[Finding] = []
    for handle in handles:
        index = pynvml.nvmlDeviceGetIndex(handle)
        if pynvml.nvmlDeviceGetComputeMode(handle) == COMPUTE_MODE_DEFAULT:
            findings.append((f"compute mode {index}", "ok", "default"))
        else:
            findings.append((f"compute mode {index}", "refused", "exclusive or prohibited: set it to default"))
        if pynvml.nvmlDeviceGetDisplayActive(handle):
            findings.append((f"display {index}", "refused", "a display is active on this device: use another one"))
        else:
            findings.append((f"display {index}", "ok", "no active display"))
    return findings


if __name__ == "__main__":
    main()
