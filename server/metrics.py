"""What a server counts and measures, in Prometheus' text form. Server side; judges nothing, holds no code and no seed.

Events are counted as they are written; load and health are read when somebody asks. `docs/operations.md` says what to
look at.
"""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kernel_env.models import Verdict

from .errors import EvaluatorError
from .evaluator.interface import EvaluatorStatus
from .events import Event

disable_created_metrics()  # type: ignore[no-untyped-call]  # a time stamp per series, which nobody reads

_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
_REWARDS = (0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1, 2.4, 2.7, 3.0)
_PREFIX = "kernel_env_"

NONE = "none"
"""Label of a device, task or language that an answer does not have."""


class Metrics:
    """Counters of one server.

    Args:
        status: Load and health of the evaluator; raises while there is none.
        sessions: Open connections.
        max_sessions: As many may be open.
    """

    def __init__(self, status: Callable[[], EvaluatorStatus], sessions: Callable[[], int], max_sessions: int) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self._resets = Counter(_PREFIX + "resets", "Episodes begun.", ["language"], registry=registry)
        self._steps = Counter(
            _PREFIX + "steps", "Steps answered.", ["verdict", "language", "gpu_id"], registry=registry
        )
        self._cached = Counter(
            _PREFIX + "cached_steps", "Steps answered with an earlier result of the episode.", registry=registry
        )
        self._suspicious = Counter(
            _PREFIX + "suspicious_steps",
            "Results worth a look: faster than the floor, or oddly fast.",
            registry=registry,
        )
        self._reward = Histogram(_PREFIX + "reward", "Reward of scored steps.", registry=registry, buckets=_REWARDS)
        self._evaluation = Histogram(
            _PREFIX + "evaluation_seconds", "An evaluation, waiting left out.", registry=registry, buckets=_SECONDS
        )
        self._wait = Histogram(
            _PREFIX + "wait_seconds", "Time an evaluation waited for its turn.", registry=registry, buckets=_SECONDS
        )
        self._stage = Histogram(
            _PREFIX + "stage_seconds", "Stages of an evaluation.", ["stage"], registry=registry, buckets=_SECONDS
        )
        registry.register(_Now(status, sessions, max_sessions))

    def observe(self, event: Event) -> None:
        """Count one event. Never raises."""
        if event.event == "reset":
            self._resets.labels(event.language or NONE).inc()
            return
        self._steps.labels(event.verdict or NONE, event.language or NONE, event.gpu_id or NONE).inc()
        if event.reward is not None:
            self._reward.observe(event.reward)
        if event.suspicious:
            self._suspicious.inc()
        if event.cached:
            self._cached.inc()
            return
        if event.verdict in {Verdict.BUSY, Verdict.INFRA_ERROR}:
            return  # nothing was evaluated
        if event.eval_s is not None:
            self._evaluation.observe(event.eval_s)
        if event.queue_wait_s is not None:
            self._wait.observe(event.queue_wait_s)
        for stage, seconds in (event.phases or {}).items():
            self._stage.labels(stage).observe(seconds)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)


class _Now(Collector):
    """What is true at the moment of asking."""

    def __init__(self, status: Callable[[], EvaluatorStatus], sessions: Callable[[], int], max_sessions: int) -> None:
        self._status, self._sessions, self._max_sessions = status, sessions, max_sessions

    def collect(self) -> Iterator[Metric]:
        """One value per gauge, devices apart."""
        yield _gauge("sessions", "Open sessions.", self._sessions())
        yield _gauge("sessions_max", "Sessions that may be open.", self._max_sessions)
        try:
            status = self._status()
        except EvaluatorError:
            yield _gauge("up", "Whether submissions can be judged.", 0)
            return
        yield _gauge("up", "Whether submissions can be judged.", int(status.fault is None))
        yield _gauge(
            "isolation_strong", "Whether every layer of the sandbox is in force.", status.isolation == "strong"
        )
        yield _gauge("evaluations_running", "Evaluations that have begun or wait.", status.running)
        yield _gauge("evaluations_waiting", "Evaluations that wait for a place or a device.", status.waiting)
        devices = {
            "healthy": "Whether evaluations are sent to the device.",
            "busy": "Whether an evaluation holds the device.",
            "assigned": "Evaluations that are to be judged on the device and have not ended.",
            "strikes": "Faults of the device in a row.",
        }
        for name, text in devices.items():
            family = GaugeMetricFamily(f"{_PREFIX}device_{name}", text, labels=["gpu_id"])
            for device in status.devices:
                family.add_metric([device.gpu_id], getattr(device, name))
            yield family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, text, value=value)
