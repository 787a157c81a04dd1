"""Warm parent of every candidate: imports torch and Triton once and forks one confined process per submission.

Trusted, but poor: it holds no seed and no CUDA context. It never runs a torch operator, because a parallel one before
the fork hangs the child, and never resolves Triton's driver, because that initialises CUDA, which a fork breaks.
Started as a program: `python -m <package>.zygote FD cpu|cuda CACHE_DIR`.
"""

import importlib
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..protocol import Channel, ChannelClosed, encode_ready
from ..sandbox import program
from ..sandbox.confine import Confinement, confine
from ..sandbox.environ import environment
from ..sandbox.isolation import Isolation
from ..sandbox.limits import Limits
from ..sandbox.reach import make_reachable
from ..sandbox.roots import default_readable
from .interpreted import enable_autotuning
from .warm_triton import warm_triton


class Zygote:
    """Forks on request and remembers how its children ended."""

    def __init__(self, channel: Channel, device_kind: str, library: Path) -> None:
        """Serve `channel`, whose other end the evaluator holds."""
        self._channel, self._device_kind, self._library = channel, device_kind, library
        self._ended: dict[int, int] = {}

    def serve(self) -> None:
        """Until the evaluator closes its end."""
        wake_read, wake_write = socket.socketpair()
        for end in (wake_read, wake_write):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write.fileno(), warn_on_full_buffer=False)
        selector = selectors.DefaultSelector()
        selector.register(wake_read, selectors.EVENT_READ)
        selector.register(self._channel.sock, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is wake_read:
                    with suppress(BlockingIOError):
                        wake_read.recv(4096)
                    self._reap()
                elif not self._answer():
                    return

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._ended[pid] = os.waitstatus_to_exitcode(status)

    def _answer(self) -> bool:
        try:
            packet, fds = self._channel.receive_with_fds(2)
        except ChannelClosed:
            return False
        command = json.loads(packet)
        if command["op"] == "spawn":
            try:
                answer: dict[str, object] = {"pid": self._spawn(command, fds)}
            except OSError as error:  # the host has no process or memory left; that may pass
                answer = {"error": f"a candidate could not be forked: {error.strerror}"}
            self._channel.send(json.dumps(answer).encode())
        else:
            self._reap()
            code = self._ended.pop(command["pid"], None)
            self._channel.send(json.dumps({"exit": code}).encode())
        for fd in fds:
            os.close(fd)
        return True

    def _spawn(self, command: Mapping[str, Any], fds: list[int]) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            status = 70  # EX_SOFTWARE: our own code failed before any submitted line ran
            try:
                self._become_candidate(parent, command, *fds)
                status = 0
            except BaseException as error:
                with suppress(BaseException):
                    os.write(2, f"candidate: {error!r}\n".encode())
            finally:
                os._exit(status)
        self._ended.pop(pid, None)  # of an earlier process with that number
        return pid

    def _become_candidate(self, parent: int, command: Mapping[str, Any], channel_fd: int, log_fd: int) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if os.getppid() != parent:
            return
        self._channel.sock.detach()
        isolation = command["isolation"]
        confine(
            Confinement(
                scratch=command["scratch"],
                log_fd=log_fd,
                isolation=Isolation(**{**isolation, "missing": tuple(isolation["missing"])}),
                environment=environment(
                    command["scratch"],
                    self._device_kind,
                    cores=command["threads"],
                    visible_device=command["visible_device"],
                ),
                readable=(*default_readable(), str(self._library)),
                uid=command["uid"],
                gid=command["gid"],
                keep_fds=(channel_fd,),
                devices=tuple(command["devices"]),
                # The CUDA driver binds a Unix socket while it initialises; without one it fails with error 304.
                socket_families=(socket.AF_UNIX,) if self._device_kind == "cuda" else (),
                limits=Limits(**command["limits"]),
            )
        )
        run_candidate(channel_fd, self._device_kind, self._library, command["threads"])


def run_candidate(channel_fd: int, device_kind: str, library: Path, threads: int) -> None:
    """Body of a candidate, already confined."""
    import torch  # imported by the zygote long before

    from .memory import CpuMemory, CudaMemory, Memory
    from .runtime import Candidate

    torch.set_num_threads(threads)
    memory: Memory = CudaMemory(library) if device_kind == "cuda" else CpuMemory(library)
    channel = Channel(socket.socket(fileno=channel_fd))
    channel.send(encode_ready())
    Candidate(channel, memory, device_kind).serve()


def warm_up(device_kind: str, cache_dir: Path) -> None:
    """Import what every candidate needs, and compute what can be inherited through the fork."""
    for name in ("torch", "triton", "triton.language", f"{__package__}.memory", f"{__package__}.runtime"):
        importlib.import_module(name)
    if device_kind == "cpu":
        # On a CUDA build this import asks for the device, which calls cuInit; a candidate does it for itself there.
        importlib.import_module("torch.utils.cpp_extension")
        enable_autotuning()
        return
    for name in ("cuda.bindings.runtime", "triton.backends.nvidia.compiler", "triton.backends.nvidia.driver"):
        importlib.import_module(name)
    # Hashes the whole Triton installation, 0.7 s, and keeps the result; its place moves between versions.
    triton_key = getattr(importlib.import_module("triton.runtime.cache"), "triton_key", None)
    if triton_key is not None:
        triton_key()
    warm_triton(cache_dir)


def main() -> None:
    """Entry of the program."""
    channel_fd, device_kind, cache_dir = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    program.prctl(program.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=channel_fd))
    warm_up(device_kind, cache_dir)
    from .build import BuildFailed, build_arena

    try:
        library = build_arena(device_kind, cache_dir)
    except BuildFailed as error:
        channel.send(json.dumps({"error": str(error)}).encode())
        return
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        channel.send(json.dumps({"error": f"{threads} threads after the imports; a fork needs one"}).encode())
        return
    hidden = make_reachable((*default_readable(), str(library)))
    if hidden and os.geteuid() == 0:
        channel.send(json.dumps({"error": f"candidates cannot read {hidden[0]}: open it to other users"}).encode())
        return
    channel.send(json.dumps({"ready": True}).encode())
    Zygote(channel, device_kind, library).serve()


if __name__ == "__main__":
    main()
