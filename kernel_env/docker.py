"""Starts a server image with Docker and stops it again. Client side; decides how the container is run.

OpenEnv's own provider passes no GPU, waits 30 s, publishes on every interface, and leaves the container behind when
`docker stop` is slow. This one does not.
"""

import logging
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

from openenv.core.containers.runtime import ContainerProvider

logger = logging.getLogger(__name__)

SERVER_PORT = 8000
"""Port the image listens on."""

READY_TIMEOUT_S = 180.0
"""A first start calibrates its devices and imports torch from a cold disk."""

STOP_GRACE_S = 10
"""The server ends within 5 s of SIGTERM; twice that, then Docker kills it."""

COMMAND_TIMEOUT_S = 60.0
PULL_TIMEOUT_S = 3600.0
"""`docker run` may have to pull an image of several GB."""

POLL_S = 0.5
GPU_NODES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""Present on Linux with the NVIDIA driver, and under WSL."""


class DockerProvider(ContainerProvider):
    """One container of a kernel-env image, published on 127.0.0.1 only.

    Args:
        gpus: Value of `--gpus`; `auto` gives `all` on a host with an NVIDIA driver and leaves the flag out elsewhere;
            None always leaves it out.
        shm_size: Value of `--shm-size`; None leaves Docker's 64 MB.
        docker: Name or path of the Docker program.
    """

    def __init__(self, gpus: str | None = "auto", shm_size: str | None = "1g", docker: str = "docker") -> None:
        self._gpus = gpus
        self._shm_size = shm_size
        self._docker = docker
        self._container: str | None = None

    def start_container(
        self, image: str, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any
    ) -> str:
        """Run the image in the background.

        Args:
            port: Port on 127.0.0.1; None lets Docker pick a free one.
            kwargs: None are known; a misspelt one must not be dropped in silence.
        Returns:
            Base URL of the server, which may not be ready yet.
        Raises:
            RuntimeError: Docker is missing or refused; its own message is included.
            TypeError: Unknown option.
        """
        if kwargs:
            raise TypeError(f"unknown option {', '.join(sorted(kwargs))}; DockerProvider knows port and env_vars")
        self.stop_container()
        name = f"kernel-env-{uuid.uuid4().hex[:12]}"
        publish = f"127.0.0.1:{'' if port is None else port}:{SERVER_PORT}"
        command = ["run", "--detach", "--name", name, "--publish", publish]
        gpus = _host_gpus() if self._gpus == "auto" else self._gpus
        if gpus is not None:
            command += ["--gpus", gpus]
        if self._shm_size is not None:
            command += ["--shm-size", self._shm_size]
        for key, value in (env_vars or {}).items():
            command += ["--env", f"{key}={value}"]
        # Known before the command ends: a `run` that is interrupted can still leave a container behind.
        self._container = name
        try:
            self._run([*command, image], timeout_s=PULL_TIMEOUT_S)
            if port is None:
                port = _published_port(self._run(["port", name, f"{SERVER_PORT}/tcp"]))
        except BaseException:
            self.stop_container()
            raise
        return f"http://127.0.0.1:{port}"

    def wait_for_ready(self, base_url: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Return once `/health` answers.

        Raises:
            RuntimeError: The container ended; the end of its log is included.
            TimeoutError: Not ready in time; the end of its log is included.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if _is_healthy(base_url):
                return
            if not self._is_running():
                raise RuntimeError(f"the container ended before it was ready; end of its log:\n{self._log_tail()}")
            time.sleep(POLL_S)
        raise TimeoutError(f"the container was not ready within {timeout_s:g} s; end of its log:\n{self._log_tail()}")

    def stop_container(self) -> None:
        """Stop and remove the container. Never raises: what cannot be removed is logged with its name."""
        name, self._container = self._container, None
        if name is None:
            return
        for command in (["stop", "--time", str(STOP_GRACE_S), name], ["rm", "--force", "--volumes", name]):
            try:
                self._run(command)
            except RuntimeError as error:
                logger.warning("docker_stop_failed container=%s error=%s", name, error)

    def _is_running(self) -> bool:
        if self._container is None:
            return False
        try:
            return self._run(["inspect", "--format", "{{.State.Running}}", self._container]).strip() == "true"
        except RuntimeError:
            return False

    def _log_tail(self) -> str:
        if self._container is None:
            return ""
        try:
            return self._run(["logs", "--tail", "20", self._container], merge_stderr=True)
        except RuntimeError as error:
            return f"(no log: {error})"

    def _run(self, arguments: list[str], timeout_s: float = COMMAND_TIMEOUT_S, *, merge_stderr: bool = False) -> str:
        """Standard output of one Docker command; every failure is a RuntimeError."""
        try:
            done = subprocess.run(
                [self._docker, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=True,
            )
        except FileNotFoundError as error:
            raise RuntimeError(f"{self._docker} was not found: install Docker, or start the server yourself") from error
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"docker {arguments[0]} took longer than {timeout_s:g} s") from error
        except subprocess.CalledProcessError as error:
            text = (error.stderr or error.stdout or "").strip()
            raise RuntimeError(f"docker {arguments[0]} failed with exit code {error.returncode}: {text}") from error
        return done.stdout


def _host_gpus() -> str | None:
    return "all" if any(node.exists() for node in GPU_NODES) else None


def _published_port(text: str) -> int:
    """Port out of `docker port`, whose lines look like `127.0.0.1:49153`."""
    first = text.strip().splitlines()[0] if text.strip() else ""
    _, _, port = first.rpartition(":")
    if not port.isdigit():
        raise RuntimeError(f"docker port answered {first!r}, expected 127.0.0.1:PORT")
    return int(port)


def _is_healthy(base_url: str) -> bool:
    # Without the handler a proxy from the environment would be asked for a local address.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{base_url}/health", timeout=2.0) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False
