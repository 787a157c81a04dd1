"""`KernelEnv`: typed client of the environment. Decides how calls and replies look; knows no task and no reward."""

import asyncio
import inspect
from typing import Any, Self, TypeVar

from openenv.core.client_types import StepResult
from openenv.core.containers.runtime import ContainerProvider
from pydantic import BaseModel, ValidationError

from kernel_env.docker import READY_TIMEOUT_S, DockerProvider
from kernel_env.errors import ServerError
from kernel_env.models import KernelAction, KernelObservation, KernelState, Language, Split
from kernel_env.session import SessionClient

# AutoEnv looks the action and observation types up in this module.
__all__ = ["KernelAction", "KernelEnv", "KernelObservation", "KernelState"]

ModelT = TypeVar("ModelT", bound=BaseModel)


class KernelEnv(SessionClient):
    """One session: `reset()`, then `step()` until `done`. Async; `.sync()` gives the blocking form.

    A client serves one caller at a time: concurrent episodes need a client each. The arguments are those of
    `SessionClient`.
    """

    @classmethod
    async def from_docker_image(
        cls,
        image: str,
        provider: ContainerProvider | None = None,
        *,
        gpus: str | None = "auto",
        shm_size: str | None = "1g",
        wait_timeout: float = READY_TIMEOUT_S,
        **options: Any,
    ) -> Self:
        """Start a container of `image` and return a client of it; `close()` removes the container.

        The socket is opened on first use, so that a client made inside `asyncio.run()` works in another loop.

        Args:
            gpus: See `DockerProvider`.
            shm_size: See `DockerProvider`.
            wait_timeout: Seconds until ready. Raised to 180 if less: OpenEnv's `AutoEnv` always passes 30.
            options: Of the constructor (`message_timeout_s`, ...) or of the provider (`port`, `env_vars`).
        """
        known = inspect.signature(cls.__init__).parameters
        client_options = {name: options.pop(name) for name in list(options) if name in known}
        if provider is None:
            provider = DockerProvider(gpus=gpus, shm_size=shm_size)
        try:
            base_url = await asyncio.to_thread(provider.start_container, image, **options)
            await asyncio.to_thread(provider.wait_for_ready, base_url, max(wait_timeout, READY_TIMEOUT_S))
        except BaseException:
            provider.stop_container()
            raise
        return cls(base_url=base_url, provider=provider, **client_options)

    async def reset(
        self,
        *,
        seed: int | None = None,
        episode_id: str | None = None,
        task_id: str | None = None,
        split: Split | str | None = None,
        level: int | None = None,
        language: Language | str | None = None,
        max_turns: int | None = None,
        **options: Any,
    ) -> StepResult[KernelObservation]:
        """Begin an episode; connects again if the last session was lost. A refused reset keeps the old episode.

        Args:
            seed: Selects the task within `split`, `level` and `language`; the same for every client and server.
            episode_id: Name of the episode, for your own records; default: made by the server.
            task_id: Selects the task by name instead.
            split: `train` (default), `eval` or `reserved`.
            level: KernelBench level, 1 to 3.
            language: `triton`, `cuda` or `cpp`, as far as the server's device offers it.
            max_turns: Fewer turns than the server's own number.
            options: Sent as they are.
        Returns:
            Observation with the task in `problem`.
        Raises:
            ServerFull: No session free.
            ServerError: Refused; the text says what to send instead.
        """
        named = {
            "seed": seed,
            "episode_id": episode_id,
            "task_id": task_id,
            "split": split,
            "level": level,
            "language": language,
            "max_turns": max_turns,
        }
        data = options | {name: value for name, value in named.items() if value is not None}
        result = self._parse_result(await self._call({"type": "reset", "data": data}))
        if episode_id is not None and result.observation.episode_id != episode_id:
            raise self._foreign_reply(episode_id, result.observation.episode_id)
        self._episode_id = result.observation.episode_id
        return result

    async def step(self, action: KernelAction | str, **kwargs: Any) -> StepResult[KernelObservation]:
        """Submit one module and wait for its verdict.

        Args:
            action: The submission; a string stands for `KernelAction(code=...)`.
        Raises:
            SessionLost: The episode is gone; call `reset()`.
            ReplyTimeout: No verdict within `message_timeout_s`; the episode is gone.
            ServerError: The request was refused, for instance because the episode is over.
        """
        if kwargs:
            raise TypeError(f"step() takes no options, got {', '.join(sorted(kwargs))}")
        if isinstance(action, str):
            action = KernelAction(code=action)
        result = self._parse_result(await self._call({"type": "step", "data": self._step_payload(action)}))
        self._require_own(result.observation.episode_id)
        return result

    async def state(self) -> KernelState:
        """State of the episode: history, best result.

        Raises:
            SessionLost: The episode is gone; call `reset()`.
        """
        state = self._parse_state(await self._call({"type": "state"}))
        self._require_own(state.episode_id)
        return state

    def _step_payload(self, action: KernelAction) -> dict[str, Any]:
        return {"code": action.code, "language": action.language}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        reward, done = payload.get("reward"), bool(payload.get("done", False))
        fields = payload.get("observation") or {}
        observation = _parsed(KernelObservation, {**fields, "reward": reward, "done": done})
        return StepResult(observation=observation, reward=observation.reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> KernelState:
        return _parsed(KernelState, payload)

    async def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        data = (await self._send_and_receive(message)).get("data")
        return data if isinstance(data, dict) else {}


def _parsed(model: type[ModelT], fields: dict[str, Any]) -> ModelT:
    """`fields` as `model`. Fields a newer server adds are dropped, not refused."""
    try:
        return model.model_validate({name: value for name, value in fields.items() if name in model.model_fields})
    except ValidationError as error:
        raise ServerError(f"the server's reply is not a {model.__name__}: {error}", "BAD_REPLY") from error
