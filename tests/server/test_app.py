"""The application over real sockets: sessions, capacity, frames that make no sense, status routes, the end."""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as ws_connect

from kernel_env.client import KernelEnv
from kernel_env.terms import MAX_CODE_CHARS, Verdict
from server.evaluator.interface import Evaluation, EvaluatorStatus
from server.settings import Settings
from server.testing import FakeEvaluator
from tests.serving import serving


def get(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=5.0) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def socket_of(url: str) -> ws_connect:
    return ws_connect(f"{url.replace('http', 'ws')}/ws", proxy=None, max_size=None)


async def ask(socket: ClientConnection, frame: object) -> dict[str, Any]:
    await socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
    async with asyncio.timeout(5.0):
        reply: dict[str, Any] = json.loads(await socket.recv())
    return reply


def until(is_so: Callable[[], bool]) -> None:
    """Return once it is so; the far end is another thread, which can only be asked."""
    deadline = time.monotonic() + 5.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_64_sessions_play_episodes_at_the_same_time() -> None:
    evaluator = FakeEvaluator(delay_s=0.05)

    async def play(url: str, number: int) -> Verdict | None:
        async with KernelEnv(url) as env:
            await env.reset(seed=number, episode_id=f"episode-{number}")
            result = await env.step(f"x = {number}")
            assert result.observation.episode_id == f"episode-{number}"
            verdict: Verdict | None = result.observation.verdict
            return verdict

    async def play_all(url: str) -> list[Verdict | None]:
        return await asyncio.gather(*(play(url, number) for number in range(64)))

    with serving(evaluator) as url:
        assert asyncio.run(play_all(url)) == [Verdict.PASSED] * 64
    assert len({call.session_id for call in evaluator.calls}) == 64
    assert evaluator.is_closed


BAD_FRAMES = {
    "not json": ("nonsense", "Invalid JSON"),
    "array": ("[1, 2]", "expected a JSON object"),
    "number": ("7", "expected a JSON object"),
    "deep": ("[" * 100_000, "nested too deeply"),
    "huge integer": ('{"type": ' + "9" * 5000 + "}", "Invalid JSON"),
    "binary": (b'{"type": "state"}', "binary frame"),
    "unknown type": ({"type": "jump"}, "jump"),
    "no type": ({}, "Unknown message type"),
    "data is no object": ({"type": "reset", "data": [1]}, "data"),
    "no code": ({"type": "step", "data": {}}, "code"),
    "code is no text": ({"type": "step", "data": {"code": 5}}, "code"),
    "code too long": ({"type": "step", "data": {"code": "x" * 300_000}}, str(MAX_CODE_CHARS)),
    "unknown field": ({"type": "step", "data": {"code": "x", "timeout": 5}}, "timeout"),
    "lone surrogate": ('{"type": "step", "data": {"code": "\\ud800"}}', "lone surrogate"),
    "lone low surrogate": ('{"type": "reset", "data": {"task_id": "\\uDC00"}}', "lone surrogate"),
    "unknown option": ({"type": "reset", "data": {"sed": 1}}, "Did you mean 'seed'"),
    "forged connection": ({"type": "reset", "data": {"_connection": "x", "split": "nope"}}, "split"),
}


def test_frames_that_make_no_sense_are_answered_briefly_and_the_session_lives_on() -> None:
    async def scenario(url: str) -> None:
        async with socket_of(url) as socket:
            assert (await ask(socket, {"type": "reset", "data": {"task_id": "relu"}}))["type"] == "observation"
            for name, (frame, says) in BAD_FRAMES.items():
                reply = await ask(socket, frame)
                assert reply["type"] == "error", name
                assert says in reply["data"]["message"], name
                assert len(json.dumps(reply)) < 1000, name
            reply = await ask(socket, {"type": "step", "data": {"message": "x = '\U0001f600 \\u00e9 \x00'"}})
            assert reply["data"]["observation"]["turn"] == 1

    with serving(FakeEvaluator()) as url:
        asyncio.run(scenario(url))


def test_a_full_server_says_so_and_a_freed_session_can_be_taken() -> None:
    async def scenario(url: str) -> None:
        async with socket_of(url) as first:
            await ask(first, {"type": "reset", "data": {}})
            async with socket_of(url) as second:
                async with asyncio.timeout(5.0):
                    reply = json.loads(await second.recv())
            assert reply["data"]["code"] == "CAPACITY_REACHED"
            assert (await asyncio.to_thread(get, f"{url}/capacity"))[1]["free_sessions"] == 0
        await asyncio.to_thread(until, lambda: get(f"{url}/capacity")[1]["free_sessions"] == 1)
        async with socket_of(url) as third:
            assert (await ask(third, {"type": "reset", "data": {}}))["type"] == "observation"

    with serving(FakeEvaluator(), Settings(max_concurrent_envs=1)) as url:
        asyncio.run(scenario(url))


def test_a_client_that_leaves_frees_its_session_while_its_step_still_waits() -> None:
    evaluator = FakeEvaluator(hold=threading.Event())

    async def scenario(url: str) -> None:
        async with socket_of(url) as socket:
            await ask(socket, {"type": "reset", "data": {}})
            await socket.send(json.dumps({"type": "step", "data": {"code": "x"}}))
            await asyncio.to_thread(until, lambda: evaluator.status().waiting == 1)
        await asyncio.to_thread(until, lambda: evaluator.status().waiting == 0)

    with serving(evaluator) as url:
        asyncio.run(scenario(url))
        until(lambda: get(f"{url}/capacity")[1]["active_sessions"] == 0)


def test_sessions_leave_no_line_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """A launcher that never drains our output must not stop the server."""

    async def scenario(url: str) -> None:
        async with socket_of(url) as socket:
            await ask(socket, {"type": "reset", "data": {}})

    with serving(FakeEvaluator()) as url:
        asyncio.run(scenario(url))
        until(lambda: get(f"{url}/capacity")[1]["active_sessions"] == 0)
    written = "".join(capsys.readouterr())
    assert "Application startup complete" in written
    for noise in ("Exception", "Traceback", "connection", "WebSocket", "GET /capacity"):
        assert noise not in written


def test_status_routes_tell_devices_isolation_and_capacity() -> None:
    with serving(FakeEvaluator(), Settings(max_concurrent_envs=5)) as url:
        assert get(f"{url}/health") == (200, {"status": "healthy"})
        status, body = get(f"{url}/health/gpu")
        assert status == 200
        assert body["devices"] == [{"gpu_id": "cpu", "kind": "cpu", "name": "fake CPU"}]
        assert (body["isolation"], body["waiting"], body["running"]) == ("weak", 0, 0)
        assert get(f"{url}/capacity")[1] == {"max_sessions": 5, "active_sessions": 0, "free_sessions": 5}
        assert get(f"{url}/metadata")[1]["name"] == "kernel_env"
        assert get(f"{url}/schema")[1]["action"]["required"] == ["code"]


def test_metrics_are_served_as_prometheus_reads_them() -> None:
    async def play(url: str) -> None:
        async with KernelEnv(url) as env:
            await env.reset(task_id="relu")
            await env.step("x = 1")
            await env.step("x = 1")

    with serving(FakeEvaluator()) as url:
        asyncio.run(play(url))
        with urllib.request.urlopen(f"{url}/metrics", timeout=5.0) as reply:
            assert reply.headers["Content-Type"].startswith("text/plain; version=")
            lines = reply.read().decode().splitlines()
    assert 'kernel_env_steps_total{gpu_id="cpu",language="cpp",verdict="passed"} 2.0' in lines
    assert "kernel_env_cached_steps_total 1.0" in lines
    assert "kernel_env_up 1.0" in lines


def test_an_evaluator_that_can_judge_nothing_fails_its_health_check() -> None:
    """A container runtime then starts the server again; sessions meanwhile get `infra_error`."""

    class Broken(FakeEvaluator):
        def status(self) -> EvaluatorStatus:
            return replace(super().status(), fault="the warden ended")

    with serving(Broken()) as url:
        status, body = get(f"{url}/health/gpu")
        assert (status, body["status"], body["fault"]) == (503, "fault", "the warden ended")
        assert get(f"{url}/health")[0] == 200


def test_an_http_request_that_cannot_be_served_says_what_to_do() -> None:
    def post(url: str, body: object) -> tuple[int, str]:
        request = urllib.request.Request(
            url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=5.0) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    with serving(FakeEvaluator()) as url:
        status, text = post(f"{url}/step", {"action": {"code": "x"}})
        assert (status, "call reset() before step(), over the same WebSocket" in text) == (400, True)
        status, text = post(f"{url}/reset", {"task_id": "relo"})
        assert (status, "relu" in text) == (400, True)
        assert post(f"{url}/reset", {"task_id": "relu"})[0] == 200


def test_steps_at_work_end_when_the_server_stops() -> None:
    evaluator = FakeEvaluator(delay_s=60.0)

    async def begin_step(url: str) -> None:
        async with socket_of(url) as socket:
            await ask(socket, {"type": "reset", "data": {}})
            await socket.send(json.dumps({"type": "step", "data": {"code": "x"}}))
            await asyncio.to_thread(until, lambda: evaluator.status().running == 1)

    with serving(evaluator) as url:
        asyncio.run(begin_step(url))
        began = time.monotonic()
    assert time.monotonic() - began < 5.0
    assert evaluator.is_closed


def test_nothing_is_built_before_the_server_runs() -> None:
    from server.app import make_app

    def must_not_be_called(_: Settings) -> Evaluation:
        raise AssertionError("built at import")

    app = make_app(Settings(), build=must_not_be_called, event_fd=None)
    assert {"/ws", "/health", "/health/gpu", "/capacity", "/reset", "/step"} <= {
        getattr(route, "path", "") for route in app.routes
    }
