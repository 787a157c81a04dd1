"""`KernelEnvironment`: OpenEnv's reset and step for one session. Decides turns, judges nothing. Server side.

Reset and step are synchronous on purpose: OpenEnv runs them in a thread of the session, so that a long evaluation
never holds up the event loop and its pings. What is shared between sessions comes in through `Services`.
"""

import importlib.metadata
import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

from kernel_env.models import KernelAction, KernelObservation, KernelState, Split, Verdict

from .connections import CONNECTION_OPTION, Connections
from .episode import Episode
from .errors import Busy, EvaluatorError, InvalidRequest, KernelEnvError
from .evaluator.interface import Evaluation
from .evaluator.results import EvalResult, Submission
from .evaluator.submission_text import detect_language, extract
from .events import EventLog, reset_event, step_event
from .observation import reset_observation, scored_observation, unscored_observation
from .policy import Policy
from .reset_request import ResetRequest, require_offered
from .rubrics import KernelRubric, kernel_rubric
from .tasks.prompt import build_prompt
from .tasks.registry import TaskSet
from .tasks.task import languages_for

logger = logging.getLogger(__name__)

DISTRIBUTION = "openenv-kernel-env"
DESCRIPTION = (
    "Write GPU kernels: each step judges one Python module that defines ModelNew, in Triton, CUDA or C++, against a "
    "PyTorch reference on a real device, and rewards correctness and closeness to the roofline."
)


@dataclass(frozen=True, slots=True)
class Services:
    """What every session of a server shares."""

    evaluation: Evaluation
    tasks: TaskSet
    events: EventLog
    connections: Connections
    max_turns: int
    step_budget_s: float | None = None
    policy: Policy = Policy.STRICT


class KernelEnvironment(Environment[KernelAction, KernelObservation, KernelState]):
    """One session. Building one costs nothing: OpenEnv also builds and discards some to look at them.

    Args:
        services: Asked at every reset and step; raises while the server is starting or stopping.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    rubric: KernelRubric

    def __init__(self, services: Callable[[], Services]) -> None:
        super().__init__(rubric=kernel_rubric())
        self._services = services
        self._session_id = uuid.uuid4().hex
        self._connection: str | None = None
        self._episode: Episode | None = None
        self._is_closed = False
        self._turn_lock = threading.Lock()  # OpenEnv's web page shares one environment between its visitors

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> KernelObservation:
        """Begin an episode. A refused request leaves the running episode as it was.

        Args:
            seed: Selects the task; it has no influence on hidden inputs.
            episode_id: Name of the episode; default: a new one.
            kwargs: Those of `reset_request.OPTIONS`.
        Raises:
            InvalidRequest: The text says what to send instead.
        """
        with self._turn_lock:
            self._require_open()
            connection = kwargs.pop(CONNECTION_OPTION, None)
            request = ResetRequest.parse(seed, episode_id, kwargs)
            services = self._services()
            device = services.evaluation.devices[0]
            choice = request.choose(services.tasks)
            episode = Episode(
                episode_id=request.episode_id or uuid.uuid4().hex,
                task=choice.task,
                language=request.language_of(languages_for(device.kind)),
                max_turns=request.turns_within(services.max_turns),
                seed=request.seed,
                dataset_size=choice.dataset_size,
            )
            prompt = build_prompt(
                episode.task,
                episode.language,
                episode.max_turns,
                device_kind=device.kind,
                device_name=device.name,
                policy=services.policy,
            )
            isolation = services.evaluation.status().isolation
            self._connection = connection if isinstance(connection, str) else None
            self._episode = episode
            self._reset_rubric()
            observation = reset_observation(episode, prompt, device, isolation)
            services.events.write(reset_event(self._session_id, observation))
            return observation

    def step(self, action: KernelAction, timeout_s: float | None = None, **kwargs: Any) -> KernelObservation:
        """Judge one submission. A submission's fault is a verdict; only a request that makes no sense raises.

        Args:
            timeout_s: Answer `busy` unless the evaluation began within so many seconds.
            kwargs: None are known.
        Raises:
            InvalidRequest: No episode, episode over, session closed, or a language that is not offered.
        """
        with self._turn_lock:
            self._require_open()
            if kwargs:
                raise InvalidRequest(f"step() takes no options, got: {', '.join(sorted(kwargs))}")
            episode = self._running_episode()
            services = self._services()
            submission = self._submission(action, episode, services)
            outcome = self._judge(episode, submission, services, timeout_s)
            if isinstance(outcome, EvalResult):
                observation = self._score(action, episode, submission, outcome)
            else:
                episode.begin_unscored(outcome.verdict)
                observation = unscored_observation(
                    episode, submission.language, outcome.verdict, outcome.reason, outcome.retry_after_s
                )
                observation.reward = self._apply_rubric(action, observation)
                observation.reward_gain = 0.0
            services.events.write(step_event(self._session_id, observation, submission.sha256))
            return observation

    @property
    def state(self) -> KernelState:
        """State of the episode; without one, the number of training tasks."""
        episode = self._episode
        if episode is not None:
            return episode.state()
        try:
            services = self._services()
            return KernelState(max_turns=services.max_turns, dataset_size=len(services.tasks.select(split=Split.TRAIN)))
        except KernelEnvError:
            return KernelState()  # not started yet, or no training task: nothing to tell

    def get_metadata(self) -> EnvironmentMetadata:
        """What this environment is."""
        try:
            version = importlib.metadata.version(DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            version = "0+checkout"
        return EnvironmentMetadata(name="kernel_env", description=DESCRIPTION, version=version)

    def close(self) -> None:
        """End the session. A step that waits for a device gives up; further calls are refused."""
        self._is_closed = True

    def _require_open(self) -> None:
        if self._is_closed:
            raise InvalidRequest("this session was closed, for instance for being idle: connect again and call reset()")

    def _running_episode(self) -> Episode:
        if self._episode is None:
            raise InvalidRequest("no episode is running: call reset() before step(), over the same WebSocket")
        if self._episode.is_done:
            raise InvalidRequest(f"episode {self._episode.episode_id!r} is over: call reset() to begin another")
        return self._episode

    def _submission(self, action: KernelAction, episode: Episode, services: Services) -> Submission:
        offered = languages_for(services.evaluation.devices[0].kind)
        code = extract(action.code)
        if action.language is not None:
            return Submission(code, require_offered(action.language, offered))
        return Submission(code, detect_language(code, offered, episode.language))

    def _judge(
        self, episode: Episode, submission: Submission, services: Services, timeout_s: float | None
    ) -> "EvalResult | _Unscored":
        """Result of the submission, or why there is none. The one place where our own faults are caught."""
        stored = episode.stored(submission)
        if stored is not None:
            return stored
        limits = [limit for limit in (services.step_budget_s, timeout_s) if limit is not None]
        try:
            return services.evaluation.evaluate(
                episode.task,
                submission,
                session_id=self._session_id,
                start_within_s=min(limits, default=None),
                is_cancelled=lambda: self._is_closed or services.connections.is_gone(self._connection),
            )
        except Busy as error:
            return _Unscored(Verdict.BUSY, str(error), error.retry_after_s)
        except EvaluatorError as error:
            logger.warning("evaluation_failed task=%s error=%s", episode.task.task_id, error)
            return _Unscored(Verdict.INFRA_ERROR, str(error))
        except InvalidRequest:
            raise
        except Exception as error:
            # The text of an unforeseen exception may hold a path or worse: only its type leaves the server.
            logger.exception("evaluation_crashed task=%s", episode.task.task_id)
            return _Unscored(Verdict.INFRA_ERROR, f"internal error of the evaluator ({type(error).__name__})")

    def _score(
        self, action: KernelAction, episode: Episode, submission: Submission, result: EvalResult
    ) -> KernelObservation:
        is_cached = episode.stored(submission) is not None
        # What the first evaluation cost was counted then; this step cost nothing.
        shown = replace(result, queue_wait_s=0.0, eval_s=0.0, phases={}) if is_cached else result
        episode.begin_scored(submission, result)
        observation = scored_observation(episode, submission.language, shown, cached=is_cached)
        observation.reward = self._apply_rubric(action, observation)
        observation.rubric_scores = self.rubric.scores()
        observation.reward_gain = episode.earn(observation.reward)
        observation.best_reward = episode.best_reward
        episode.record(observation, submission.sha256)
        return observation


@dataclass(frozen=True, slots=True)
class _Unscored:
    verdict: Verdict
    reason: str
    retry_after_s: float | None = None
