"""Life of what a server's sessions share: tasks, evaluator, event log. Server side; opens no socket.

Nothing starts at import. `start` runs once, when the web server does, and `close` ends every child process; both may be
be called from any thread, and `close` also while `start` is still at work.
"""

import threading
from collections.abc import Callable
from typing import TypeAlias

from .connections import Connections
from .environment import Services
from .errors import EvaluatorError
from .evaluator.interface import Evaluation
from .events import STDOUT_FD, EventLog
from .settings import Settings
from .tasks.registry import load_tasks

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
        self._events = EventLog(settings.eval_log, event_fd)
        self._lock = threading.Lock()
        self._services: Services | None = None
        self._is_closed = False
        self.connections = Connections()

    def start(self) -> None:
        """Load the tasks and build the evaluator.

        Raises:
            InvalidRequest: The task folder cannot be used.
            EvaluatorError: No evaluator can be built, or the server was told to stop meanwhile.
        """
        tasks = load_tasks(self._settings.tasks_folder)
        evaluation = self._build(self._settings)
        with self._lock:
            if not self._is_closed:
                self._services = Services(
                    evaluation=evaluation,
                    tasks=tasks,
                    events=self._events,
                    connections=self.connections,
                    max_turns=self._settings.max_turns,
                    step_budget_s=self._settings.step_budget_s,
                    policy=self._settings.policy,
                )
                return
        evaluation.close()
        raise EvaluatorError("the server was stopped before it had started")

    def services(self) -> Services:
        """What sessions share.

        Raises:
            EvaluatorError: The server is starting or stopping.
        """
        services = self._services
        if services is None or self._is_closed:
            raise EvaluatorError("the server is stopping" if self._is_closed else "the server is still starting")
        return services

    def close(self) -> None:
        """End every child process, then the event log. Steps at work are answered `infra_error`. Safe to call twice."""
        with self._lock:
            self._is_closed = True
            services = self._services
        if services is not None:
            services.evaluation.close()
        self._events.close()
