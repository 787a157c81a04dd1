"""The client: a reply is returned only if it answers this call in this episode; all else is a typed exception."""

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as ws_serve

from kernel_env import ClientError, KernelAction, KernelEnv, ReplyTimeout, ServerError, ServerFull, SessionLost
from kernel_env.terms import Verdict
from server.settings import Settings
from server.testing import FakeEvaluator, passed
from tests.serving import serving

Handler = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def stub(handler: Handler) -> AsyncIterator[str]:
    """URL of a WebSocket server that is not ours, to send what ours never would."""
    async with ws_serve(handler, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}"


def observation(episode_id: str, **fields: Any) -> str:
    data = {"observation": {"episode_id": episode_id, **fields}, "reward": None, "done": False}
    return json.dumps({"type": "observation", "data": data})


def test_async_and_sync_clients_play_an_episode() -> None:
    async def play(url: str) -> None:
        async with KernelEnv(url) as env:
            first = await env.reset(task_id="relu", episode_id="e")
            assert (first.observation.task_id, first.reward, first.done) == ("relu", None, False)
            result = await env.step(KernelAction(code="x = 1"))
            assert result.reward == result.observation.reward == pytest.approx(1.65)
            assert (await env.state()).history[0].verdict is Verdict.PASSED

    with serving(FakeEvaluator()) as url:
        asyncio.run(play(url))
        with KernelEnv(url).sync() as env:
            assert env.reset(seed=1).observation.turn == 0
            assert env.step("x = 1").observation.turn == 1
            assert env.state().step_count == 1


def test_generic_and_auto_clients_find_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    from openenv import AutoEnv, GenericEnvClient
    from openenv.auto import _discovery

    # As installed: AutoEnv goes through distributions, and a checkout is none.
    found = _discovery._create_env_info_from_package("openenv-kernel-env", "kernel_env", "0.1.0")
    assert found is not None
    assert (found.env_key, found.default_image) == ("kernel", "kernel-env:latest")
    discovery = _discovery.EnvironmentDiscovery()  # type: ignore[no-untyped-call]
    discovery._cache = {found.env_key: found}
    monkeypatch.setattr(_discovery, "_global_discovery", discovery)
    with serving(FakeEvaluator()) as url:
        client = AutoEnv.from_env("kernel-env", base_url=url, message_timeout_s=7.0)
        assert isinstance(client, KernelEnv)
        with client.sync() as env:
            assert env.reset(task_id="relu").observation.task_id == "relu"
        with GenericEnvClient(base_url=url).sync() as generic:
            assert generic.reset(task_id="relu").observation["task_id"] == "relu"
            assert generic.step({"message": "x = 1"}).observation["verdict"] == "passed"


def test_default_timeout_leaves_room_for_a_queue() -> None:
    assert KernelEnv("http://127.0.0.1:1")._message_timeout == 900.0


def test_a_late_reply_is_never_taken_for_the_next_one() -> None:
    hold = threading.Event()
    evaluator = FakeEvaluator([passed(t_new_ms=8.0), passed(t_new_ms=1.0)], hold=hold)

    async def scenario(url: str) -> None:
        async with KernelEnv(url, message_timeout_s=0.2) as env:
            await env.reset(task_id="relu", episode_id="first")
            with pytest.raises(ReplyTimeout, match=r"0\.2 s"):
                await env.step("slow")
            with pytest.raises(SessionLost, match=r"no reply came.*call reset\(\)"):
                await env.step("next")
            with pytest.raises(SessionLost):
                await env.state()
            hold.set()
            assert (await env.reset(task_id="relu", episode_id="second")).observation.episode_id == "second"
            result = await env.step("fast")
            assert (result.observation.episode_id, result.observation.t_new_ms) == ("second", 1.0)

    with serving(evaluator) as url:
        asyncio.run(scenario(url))


def test_a_cancelled_call_drops_the_session() -> None:
    async def scenario(url: str) -> None:
        async with KernelEnv(url) as env:
            await env.reset(task_id="relu")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await env.step("slow")
            with pytest.raises(SessionLost, match="cancelled"):
                await env.step("next")

    with serving(FakeEvaluator(hold=threading.Event())) as url:
        asyncio.run(scenario(url))


def test_a_full_server_is_told_apart_and_a_later_reset_succeeds() -> None:
    async def scenario(url: str) -> None:
        second = KernelEnv(url)
        async with KernelEnv(url) as first:
            await first.reset()
            with pytest.raises(ServerFull):
                await second.reset()
        async with asyncio.timeout(5.0):
            while True:
                try:
                    await second.reset()
                    break
                except ServerFull:
                    await asyncio.sleep(0.05)
        await second.close()

    with serving(FakeEvaluator(), Settings(max_concurrent_envs=1)) as url:
        asyncio.run(scenario(url))


def test_a_new_connection_that_is_closed_cleanly_without_a_word_counts_as_full() -> None:
    async def close_at_once(socket: ServerConnection) -> None:
        await socket.close(1000)

    async def scenario() -> None:
        async with stub(close_at_once) as url:
            with pytest.raises(ServerFull):
                await KernelEnv(url).reset()

    asyncio.run(scenario())


def test_a_socket_closed_mid_episode_is_a_lost_session_until_reset() -> None:
    connections = 0

    async def leave_after_reset(socket: ServerConnection) -> None:
        nonlocal connections
        connections += 1
        await socket.recv()
        await socket.send(observation(f"e{connections}"))
        if connections == 1:
            await socket.close(1012)
        else:
            await socket.wait_closed()

    async def scenario() -> None:
        async with stub(leave_after_reset) as url:
            env = KernelEnv(url)
            await env.reset()
            for _ in range(2):
                with pytest.raises(SessionLost):
                    await env.step("x")
            assert connections == 1
            assert (await env.reset()).observation.episode_id == "e2"
            await env.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("call", ["step", "state"])
def test_a_reply_of_another_episode_is_refused(call: str) -> None:
    async def mix_up(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(observation("mine"))
        await socket.recv()
        state = {"type": "state", "data": {"episode_id": "yours"}}
        await socket.send(observation("yours") if call == "step" else json.dumps(state))
        await socket.wait_closed()

    async def scenario() -> None:
        async with stub(mix_up) as url:
            env = KernelEnv(url)
            await env.reset()
            with pytest.raises(SessionLost, match="'yours', expected 'mine'"):
                await (env.step("x") if call == "step" else env.state())
            with pytest.raises(SessionLost, match="another episode"):
                await env.step("x")

    asyncio.run(scenario())


def test_a_server_error_carries_the_text_and_the_episode_lives_on() -> None:
    async def scenario(url: str) -> None:
        async with KernelEnv(url) as env:
            with pytest.raises(ServerError, match=r"call reset\(\) before step") as caught:
                await env.step("x")
            assert caught.value.code == "EXECUTION_ERROR"
            await env.reset(task_id="relu", episode_id="e", max_turns=1)
            with pytest.raises(ServerError, match="did you mean"):
                await env.reset(task_id="relo")
            with pytest.raises(ServerError, match="lone surrogate"):
                await env.reset(task_id="\ud800")
            assert (await env.step("x")).observation.episode_id == "e"
            with pytest.raises(ServerError, match="over"):
                await env.step("x")

    with serving(FakeEvaluator()) as url:
        asyncio.run(scenario(url))


def test_an_error_that_ends_the_session_loses_the_episode() -> None:
    async def fail(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(observation("e"))
        await socket.recv()
        await socket.send(json.dumps({"type": "error", "data": {"message": "boom", "code": "SESSION_ERROR"}}))
        await socket.close()

    async def scenario() -> None:
        async with stub(fail) as url:
            env = KernelEnv(url)
            await env.reset()
            with pytest.raises(ServerError, match="boom"):
                await env.step("x")
            with pytest.raises(SessionLost, match="boom"):
                await env.step("x")

    asyncio.run(scenario())


def test_fields_of_a_newer_server_are_ignored_and_nonsense_is_an_error() -> None:
    async def reply(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(observation("e", brand_new=1, metadata={}))
        await socket.recv()
        await socket.send(observation("e", turn="three"))
        await socket.wait_closed()

    async def scenario() -> None:
        async with stub(reply) as url:
            env = KernelEnv(url)
            assert (await env.reset()).observation.episode_id == "e"
            with pytest.raises(ServerError, match="KernelObservation"):
                await env.step("x")
            await env.close()

    asyncio.run(scenario())


def test_a_second_caller_is_refused() -> None:
    async def scenario(url: str) -> None:
        async with KernelEnv(url) as env:
            await env.reset(task_id="relu")
            step = asyncio.create_task(env.step("x"))
            await asyncio.sleep(0.05)
            with pytest.raises(ClientError, match="one client per episode"):
                await env.step("y")
            assert (await step).observation.turn == 1

    with serving(FakeEvaluator(delay_s=0.3)) as url:
        asyncio.run(scenario(url))


# The first loop ended with the socket in it; Python warns when that is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_used_in_another_event_loop_says_so_instead_of_hanging() -> None:
    async def begin(env: KernelEnv) -> None:
        await env.reset(task_id="relu")

    async def go_on(env: KernelEnv) -> None:
        with pytest.raises(SessionLost, match="event loop"):
            await env.step("x")
        await env.reset(task_id="relu")
        assert (await env.step("x")).observation.turn == 1
        await env.close()

    with serving(FakeEvaluator()) as url:
        env = KernelEnv(url)
        asyncio.run(begin(env))
        asyncio.run(go_on(env))
        gc.collect()  # here, where the warning is expected


def test_step_takes_no_options_and_nobody_at_the_address_is_a_connection_error() -> None:
    async def scenario() -> None:
        env = KernelEnv("http://127.0.0.1:1", connect_timeout_s=2.0)
        with pytest.raises(TypeError, match="timeout_s"):
            await env.step("x", timeout_s=3)
        with pytest.raises(ConnectionError, match="cannot connect"):
            await env.reset()

    asyncio.run(scenario())
