"""The evaluator's handles on its two kinds of trusted child: the zygote, which forks candidates, and a device's judge.

No torch here: the children import it. Both answer JSON over a sequenced-packet socket.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import EvaluatorError
from ..protocol import Channel, ChannelClosed, DeadlineExceeded, encode_command
from ..sandbox import program

START_TIMEOUT_S = 180.0
"""A cold `import torch` from a slow disk takes most of it."""

ZYGOTE_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 3.0

# Children ask the kernel to end them with their parent, and that means the thread that started them: a session's thread
# may restart one and end long before the server does.
_LAUNCHER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="launcher")


def command_of(module: str, arguments: Sequence[str]) -> list[str]:
    """Command line of a module of this package, `judge.program` for instance."""
    root = __package__.rsplit(".", 1)[0]
    return [sys.executable, "-P", "-m", f"{root}.{module}", *arguments]


class ChildProgram:
    """A module of this package, running."""

    def __init__(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], fds: Sequence[int] = ()
    ) -> None:
        """Start it; its first argument is the descriptor of its end of the channel."""
        ours, theirs = Channel.pair()
        self._name = module
        try:
            self.process = _LAUNCHER.submit(
                subprocess.Popen,
                command_of(module, (str(theirs.fileno()), *arguments)),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *fds],
                start_new_session=True,
                cwd="/",
            ).result()
        except OSError as error:
            ours.close()
            raise EvaluatorError(f"{module} could not be started") from error
        finally:
            theirs.close()
        self.channel = Channel(ours)
        self.lock = threading.Lock()

    def wait_ready(self) -> dict[str, Any]:
        """First message.

        Raises:
            EvaluatorError: It ended, took too long, or says what is wrong.
        """
        try:
            hello: dict[str, Any] = json.loads(self.channel.receive(START_TIMEOUT_S))
        except (ChannelClosed, DeadlineExceeded, ValueError) as error:
            raise EvaluatorError(f"{self._name} did not start") from error
        if "error" in hello:
            raise EvaluatorError(f"{self._name}: {hello['error']}")
        return hello

    def ask(self, op: str, timeout_s: float, fds: Sequence[int] = (), **fields: object) -> dict[str, Any]:
        """Send a request and return the answer.

        Raises:
            EvaluatorError: The program is gone or silent, now and from then on: a late answer would be taken for that
                to the next request.
        """
        with self.lock:
            try:
                self.channel.send(encode_command(op, **fields), fds, timeout_s=timeout_s)
                answer: dict[str, Any] = json.loads(self.channel.receive(timeout_s))
            except (ChannelClosed, DeadlineExceeded, ValueError) as error:
                self.channel.close()
                raise EvaluatorError(f"{self._name} did not answer {op!r}") from error
        if "error" in answer:
            raise EvaluatorError(f"{self._name}: {answer['error']}")
        return answer

    @property
    def is_alive(self) -> bool:
        """Whether it runs and still answers."""
        return self.process.poll() is None and self.channel.is_open

    def close(self) -> None:
        """End it. Safe to call twice."""
        self.channel.close()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_TIMEOUT_S)


class Zygote(ChildProgram):
    """Forks candidates."""

    def __init__(self, device_kind: str, cache_dir: Path, environment: Mapping[str, str]) -> None:
        """Start importing; `wait_ready` waits for it."""
        super().__init__("candidate.zygote", (device_kind, str(cache_dir)), environment)

    def spawn(self, channel_fd: int, log_fd: int, **fields: object) -> int:
        """Fork a candidate; returns its process id."""
        return int(self.ask("spawn", ZYGOTE_TIMEOUT_S, (channel_fd, log_fd), **fields)["pid"])

    def exit_code(self, pid: int) -> int | None:
        """How a candidate ended: its status, minus the signal, or None while it runs. Can be asked once."""
        code = self.ask("status", ZYGOTE_TIMEOUT_S, pid=pid)["exit"]
        return None if code is None else int(code)


class JudgeGone(EvaluatorError):
    """The judge ended, or hangs, in the middle of a request."""


class Judge(ChildProgram):
    """Decides for one device."""

    def __init__(self, gpu_id: str, warden: socket.socket, threads: int, environment: Mapping[str, str]) -> None:
        """Start; `wait_ready` waits for the calibration."""
        arguments = (str(warden.fileno()), gpu_id, str(threads))
        super().__init__("judge.program", arguments, environment, (warden.fileno(),))

    def request(
        self,
        op: str,
        timeout_s: float,
        on_event: Callable[[Mapping[str, Any]], None],
        fds: Sequence[int] = (),
        **fields: object,
    ) -> dict[str, Any]:
        """Send a request, serve the judge's wishes about other candidates meanwhile, and return the answer.

        Raises:
            JudgeGone: It ended or does not answer. It must be started anew.
        """
        with self.lock:
            try:
                self.channel.send(encode_command(op, **fields), fds, timeout_s=10.0)
                while True:
                    answer: dict[str, Any] = json.loads(self.channel.receive(timeout_s))
                    if "event" not in answer:
                        return answer
                    on_event(answer)
                    self.channel.send(b"{}", timeout_s=10.0)
            except (ChannelClosed, DeadlineExceeded, ValueError) as error:
                self.channel.close()
                raise JudgeGone("the judge ended or does not answer") from error
            except BaseException:
                # The judge is in the middle of this request; its answer must never be taken for that to another one.
                self.channel.close()
                raise


def program_environment(device_kind: str, gpu_id: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Environment of a trusted child: what it inherits is named, so that no token of the operator's reaches it."""
    kept = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CC", "CXX", "HOME", "TMPDIR")
    values = {name: os.environ[name] for name in kept if os.environ.get(name)}
    index = gpu_id.removeprefix("cuda:") if device_kind == "cuda" else ""
    return {
        **values,
        **program.environment(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": index,
        **extra,
    }
