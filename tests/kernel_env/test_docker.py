"""The Docker provider, with a program named `docker` that writes down how it is called."""

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_env import KernelEnv
from kernel_env import docker as docker_module
from kernel_env.docker import DockerProvider

FAKE_DOCKER = """#!/bin/sh
for argument in "$@"; do printf '%s\\n' "$argument" >> {log}; done
printf -- '--\\n' >> {log}
case "$1" in
  run) {run} ;;
  port) echo 127.0.0.1:{port} ;;
  inspect) echo {running} ;;
  logs) echo the end of the log ;;
  stop) {stop} ;;
esac
"""


class Host:
    """A host whose `docker` is a script."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "calls"
        self.program = folder / "docker"
        self.install()

    def install(self, *, run: str = "echo id", stop: str = ":", port: int = 49153, running: str = "true") -> None:
        self.program.write_text(FAKE_DOCKER.format(log=self.log, run=run, stop=stop, port=port, running=running))
        self.program.chmod(0o755)

    def calls(self) -> list[list[str]]:
        return [call.strip("\n").split("\n") for call in self.log.read_text().split("--\n") if call.strip()]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Host(tmp_path)


@pytest.fixture
def healthy_port() -> Iterator[int]:
    class Health(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_run_passes_gpus_shm_size_and_environment_and_listens_on_loopback_only(host: Host) -> None:
    provider = DockerProvider(gpus="all", shm_size="2g")
    url = provider.start_container("kernel-env:latest", env_vars={"KERNEL_ENV_MAX_TURNS": "2"})
    run, port = host.calls()
    name = run[3]
    assert run == [
        *("run", "--detach", "--name", name, "--publish", "127.0.0.1::8000", "--gpus", "all"),
        *("--shm-size", "2g", "--env", "KERNEL_ENV_MAX_TURNS=2", "kernel-env:latest"),
    ]
    assert port == ["port", name, "8000/tcp"]
    assert url == "http://127.0.0.1:49153"


def test_a_chosen_port_is_used(host: Host) -> None:
    assert DockerProvider(gpus=None).start_container("image", port=8123) == "http://127.0.0.1:8123"
    assert "127.0.0.1:8123:8000" in host.calls()[0]


@pytest.mark.parametrize(("has_driver", "flag"), [(True, True), (False, False)])
def test_auto_asks_for_gpus_only_where_there_is_a_driver(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_driver: bool, flag: bool
) -> None:
    node = tmp_path / "nvidiactl"
    if has_driver:
        node.touch()
    monkeypatch.setattr(docker_module, "GPU_NODES", (node,))
    DockerProvider().start_container("image")
    assert ("--gpus" in host.calls()[0]) is flag


def test_none_leaves_the_flags_out(host: Host) -> None:
    DockerProvider(gpus=None, shm_size=None).start_container("image")
    assert not {"--gpus", "--shm-size"} & set(host.calls()[0])


@pytest.mark.usefixtures("host")
def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="gpu_count"):
        DockerProvider().start_container("image", gpu_count=2)


def test_stopping_removes_the_container_even_if_stop_fails(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    provider = DockerProvider(gpus=None)
    provider.start_container("image")
    host.install(stop="echo refused >&2; exit 1")
    provider.stop_container()
    provider.stop_container()
    commands = [call[0] for call in host.calls()]
    assert commands == ["run", "port", "stop", "rm"]
    assert "refused" in caplog.text


def test_a_run_that_fails_tells_dockers_own_words_and_leaves_nothing(host: Host) -> None:
    host.install(run="echo no such image >&2; exit 125")
    with pytest.raises(RuntimeError, match=r"exit code 125: no such image"):
        DockerProvider(gpus=None).start_container("image")
    assert [call[0] for call in host.calls()] == ["run", "stop", "rm"]


def test_docker_that_is_missing_is_said_so() -> None:
    with pytest.raises(RuntimeError, match="was not found"):
        DockerProvider(docker="/no/such/docker").start_container("image")


def test_a_container_that_ended_is_reported_with_its_log(host: Host) -> None:
    provider = DockerProvider(gpus=None)
    provider.start_container("image")
    host.install(running="false")
    with pytest.raises(RuntimeError, match="the end of the log"):
        provider.wait_for_ready("http://127.0.0.1:1", timeout_s=5.0)


@pytest.mark.usefixtures("host")
def test_a_container_that_is_not_ready_in_time_is_reported_with_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_module, "POLL_S", 0.01)
    provider = DockerProvider(gpus=None)
    provider.start_container("image")
    with pytest.raises(TimeoutError, match="the end of the log"):
        provider.wait_for_ready("http://127.0.0.1:1", timeout_s=0.1)


def test_a_client_from_an_image_splits_its_options_and_removes_the_container(host: Host, healthy_port: int) -> None:
    host.install(port=healthy_port)

    async def scenario() -> None:
        env = await KernelEnv.from_docker_image(
            "image", gpus="device=0", shm_size="4g", message_timeout_s=5.0, env_vars={}, wait_timeout=1.0
        )
        assert env._message_timeout == 5.0
        await env.close()

    asyncio.run(scenario())
    calls = host.calls()
    assert {"--gpus", "device=0", "--shm-size", "4g"} <= set(calls[0])
    assert [call[0] for call in calls] == ["run", "port", "stop", "rm"]


def test_a_client_that_cannot_be_made_removes_the_container(host: Host) -> None:
    host.install(running="false", port=1)
    with pytest.raises(RuntimeError, match="before it was ready"):
        asyncio.run(KernelEnv.from_docker_image("image", gpus=None))
    assert [call[0] for call in host.calls()][-1] == "rm"


def test_calls_are_written_down_one_argument_a_line(host: Host) -> None:
    """The fake itself: an argument with a space stays one."""
    DockerProvider(gpus=None).start_container("image", env_vars={"A": "b c"})
    assert "A=b c" in host.calls()[0]
    assert json.dumps(host.calls()[0]).count("b c") == 1
