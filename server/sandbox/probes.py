"""Attempts to break out, made by a confined process for `doctor`. A program: `python -m <package>.probes NAMES JSON`.

It confines itself as a candidate would be, makes the attempts, and prints a line for what came of each. All of this is
ours; the point is that the host, not the program, is what is examined.
"""

import ctypes
import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import TypeAdapter

from . import reach
from .confine import Confinement, confine

PTRACE_ATTACH = 16
READY = b"ready\n"
"""First line of a probe that stays until it is killed."""

CHUNK_BYTES = 16 << 20
LONGEST_LIFE_S = 30.0
"""A probe that nobody kills ends by itself."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a probe is given."""

    confinement: Confinement
    secret: str
    """A file that only root may read."""

    foreign: str
    """A file outside of the scratch directory that every user may write."""


def main() -> None:
    """Confine this process and make the attempts named on the command line, separated by commas."""
    scene = SCENE.validate_json(sys.argv[2])
    reach.make_reachable(scene.confinement.readable)
    attempts = [PROBES[name] for name in sys.argv[1].split(",")]
    confine(scene.confinement)
    for attempt in attempts:
        os.write(1, attempt(scene).encode() + b"\n")


def _refused(action: Callable[[], object]) -> str:
    """`refused` if the action fails with a permission error, else what happened."""
    try:
        action()
    except PermissionError:
        return "refused"
    except OSError as error:
        return f"failed otherwise: {os.strerror(error.errno or 0)}"
    return "allowed"


def _libc_call(name: str, *arguments: int) -> None:
    """A function of libc that returns -1 on failure."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _write_thread_name(_: Scene) -> str:
    """CUDA must be able to name its threads."""
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "wb", buffering=0) as file:
        file.write(b"probe")
    return "done"


def _fork_until_refused(scene: Scene) -> str:
    """Number of forks that succeed below the limit."""
    children: list[int] = []
    try:
        while len(children) <= scene.confinement.limits.processes:
            pid = os.fork()
            if pid == 0:
                time.sleep(LONGEST_LIFE_S)
                os._exit(0)
            children.append(pid)
    except BlockingIOError:
        return "refused"
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return f"allowed {len(children)} children"


def _leave_survivors(_: Scene) -> str:
    """Children and grandchildren in groups of their own, ignoring what can be ignored."""
    for _generation in range(2):
        if os.fork() == 0:
            os.setpgid(0, 0)
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            if os.fork() == 0:
                time.sleep(LONGEST_LIFE_S)
            os._exit(0)
    os.write(1, READY)
    time.sleep(LONGEST_LIFE_S)
    return "survived"


def _count_in_threads(scene: Scene) -> str:
    """Threads that touch a file without a pause, so that a freeze shows as its time standing still."""
    path = os.path.join(scene.confinement.scratch, "beat")

    def beat() -> None:
        stop_at = time.monotonic() + LONGEST_LIFE_S
        while time.monotonic() < stop_at:
            with open(path, "wb", buffering=0) as file:
                file.write(b"%d" % time.monotonic_ns())

    for _ in range(4):
        threading.Thread(target=beat, daemon=True).start()
    os.write(1, READY)
    time.sleep(LONGEST_LIFE_S)
    return "ended"


def _fill_memory(scene: Scene) -> str:
    """Take twice the memory that is allowed, in steps."""
    os.write(1, READY)
    held = []
    for _ in range(2 * scene.confinement.limits.host_memory_bytes // CHUNK_BYTES):
        held.append(b"\1" * CHUNK_BYTES)
        time.sleep(0.02)
    time.sleep(LONGEST_LIFE_S)
    return f"held {len(held)} chunks"


def _run_compiler(_: Scene) -> str:
    """Compile and run a C++ program with threads."""
    source = "#include <thread>\nint main() { std::thread t([] {}); t.join(); return 0; }\n"
    with open("probe.cpp", "w", encoding="utf-8") as file:
        file.write(source)
    for command in (["g++", "-pthread", "probe.cpp", "-o", "probe"], ["./probe"]):
        done = subprocess.run(command, capture_output=True, timeout=LONGEST_LIFE_S, check=False)
        if done.returncode != 0:
            return f"{command[0]} ended with {done.returncode}"
    return "done"


def _import_packages(_: Scene) -> str:
    """Versions of torch and triton, imported for real."""
    versions = []
    for name in ("torch", "triton"):
        try:
            versions.append(f"{name} {importlib.import_module(name).__version__}")
        except ImportError:
            versions.append(f"{name} absent")
    return ", ".join(versions)


def _open_devices(scene: Scene) -> str:
    """Open every device node for reading and writing."""
    for path in scene.confinement.devices:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            return f"{path}: {os.strerror(error.errno or 0)}"
    return "done"


PROBES: dict[str, Callable[[Scene], str]] = {
    "inet_socket": lambda _: _refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)),
    "unix_socket": lambda _: _refused(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)),
    "read_secret": lambda scene: _refused(lambda: os.open(scene.secret, os.O_RDONLY)),
    "write_outside": lambda scene: _refused(lambda: os.open(scene.foreign, os.O_WRONLY)),
    "write_shm": lambda _: _refused(lambda: os.open("/dev/shm/kernel-env-probe", os.O_WRONLY | os.O_CREAT)),  # noqa: S108
    "read_environ": lambda _: _refused(lambda: os.open(f"/proc/{os.getppid()}/environ", os.O_RDONLY)),
    "signal_parent": lambda _: _refused(lambda: os.kill(os.getppid(), 0)),
    "ptrace": lambda _: _refused(lambda: _libc_call("ptrace", PTRACE_ATTACH, os.getppid(), 0, 0)),
    "namespace": lambda _: _refused(lambda: _libc_call("unshare", 0x1000_0000)),
    "session": lambda _: _refused(os.setsid),
    "thread_name": _write_thread_name,
    "forks": _fork_until_refused,
    "survivors": _leave_survivors,
    "threads": _count_in_threads,
    "memory": _fill_memory,
    "compiler": _run_compiler,
    "packages": _import_packages,
    "devices": _open_devices,
}
SCENE = TypeAdapter(Scene)

if __name__ == "__main__":
    main()
