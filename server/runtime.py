"""Life of what a server's sessions share: tasks, evaluator, event log. Server side; opens no socket.

Nothing starts at import. `start` runs once, when the web server does, and `close` ends every child process; both may
be called from any thread, and `close` also while `start` is still at work. An evaluator that can judge nothing any more
is replaced in between; episodes go on with the new one.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from .connections import Connections
from .environment import Services
from .errors import EvaluatorError
from .evaluator.interface import Evaluation, EvaluatorStatus
from .events import STDOUT_FD, EventLog
from .metrics import Metrics
from .settings import Settings
from .tasks.registry import load_tasks

WATCH_S = 2.0
"""How often somebody looks whether the evaluator can still judge."""

LONGEST_PAUSE_S = 300.0
"""Between attempts to start another one; doubled from `WATCH_S` on."""

logger = logging.getLogger(__name__)

Build: TypeAlias = Callable[[Settings], Evaluation]


def build_evaluator(settings: Settings) -> Evaluation:
    """The evaluator that judges on this host's devices.

    Raises:
        EvaluatorError: No device can be used, or the sandbox is too weak for these settings.
    """
    # Here, so that a server or a test with another evaluator neither needs nor loads this one.
    from .evaluator.evaluator import Evaluator  # noqa: PLC0415

    return Evaluator(settings)


class Runtime:
    """Holds the services of one server process.

    Args:
        build: Makes the evaluator; slow, and called by `start`.
        event_fd: Where event lines go besides the log file; None for nowhere.
    """

    def __init__(self, settings: Settings, build: Build = build_evaluator, event_fd: int | None = STDOUT_FD) -> None:
        self._settings = settings
        self._build = build
        self.connections = Connections()
        self.metrics = Metrics(self._status, lambda: len(self.connections), settings.max_concurrent_envs)
        self._events = EventLog(settings.eval_log, event_fd, self.metrics.observe)
        self._lock = threading.Lock()
        self._services: Services | None = None
        self._stopped = threading.Event()
        self._missing = "the server is still starting"
        """Why there are no services."""

    def start(self) -> None:
        """Load the tasks and build the evaluator.

        Raises:
            InvalidRequest: The task folder cannot be used.
            EvaluatorError: No evaluator can be built, or the server was told to stop meanwhile.
        """
        tasks = load_tasks(self._settings.tasks_folder)
        evaluation = self._build(self._settings)
        services = Services(
            evaluation=evaluation,
            tasks=tasks,
            events=self._events,
            connections=self.connections,
            max_turns=self._settings.max_turns,
            step_budget_s=self._settings.step_budget_s,
            policy=self._settings.policy,
        )
        if not self._take(services):
            raise EvaluatorError("the server was stopped before it had started")
        threading.Thread(target=self._watch, args=(services,), name="watch", daemon=True).start()

    def services(self) -> Services:
        """What sessions share.

        Raises:
            EvaluatorError: The server is starting or stopping, or its evaluator is being replaced.
        """
        services = self._services
        if services is None or self._stopped.is_set():
            raise EvaluatorError("the server is stopping" if self._stopped.is_set() else self._missing)
        return services

    def close(self) -> None:
        """End every child process, then the event log. Steps at work are answered `infra_error`. Safe to call twice."""
        with self._lock:
            self._stopped.set()
            services = self._services
        if services is not None:
            services.evaluation.close()
        self._events.close()

    def _status(self) -> EvaluatorStatus:
        return self.services().evaluation.status()

    def _take(self, services: Services) -> bool:
        """Use these from now on. False, and they are closed, if the server was told to stop."""
        with self._lock:
            if not self._stopped.is_set():
                self._services = services
                return True
        services.evaluation.close()
        return False

    def _watch(self, services: Services) -> None:
        """Replace an evaluator that can judge nothing until it is started again, its warden being dead for instance."""
        while not self._stopped.wait(WATCH_S):
            fault = services.evaluation.status().fault
            if fault is not None:
                logger.error("evaluator_replaced fault=%s", fault)
                with self._lock:
                    self._services = None
                    self._missing = f"the evaluator is being started again: {fault}"
                services.evaluation.close()
                rebuilt = self._rebuild(services)
                if rebuilt is None:
                    return
                services = rebuilt

    def _rebuild(self, services: Services) -> Services | None:
        """Services with an evaluator that works, however long that takes; None once the server stops."""
        pause_s = WATCH_S
        while not self._stopped.is_set():
            try:
                made = replace(services, evaluation=self._build(self._settings))
            except (EvaluatorError, OSError) as error:
                logger.error("evaluator_not_started retry_s=%.0f error=%s", pause_s, error)
                self._missing = f"no evaluator could be started: {error}"
                self._stopped.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                continue
            return made if self._take(made) else None
        return None
