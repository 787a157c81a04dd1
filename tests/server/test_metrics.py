"""What Prometheus reads: every event counted once under the right name, load and health as they are just then."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kernel_env.models import KernelObservation, Stage, Verdict
from server.errors import EvaluatorError
from server.evaluator.interface import DeviceStatus, EvaluatorStatus
from server.events import Event, reset_event, step_event
from server.metrics import Metrics

WELL = EvaluatorStatus(
    "strong", (), 3, 5, None, (DeviceStatus("cuda:0", True, True, 4, 0), DeviceStatus("cuda:1", False, False, 0, 3))
)


def made(status: Callable[[], EvaluatorStatus] = lambda: WELL) -> Metrics:
    return Metrics(status, lambda: 7, 64)


def read(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Value of every sample by its name and the values of its labels, those in the order of their names."""
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (s.name, *(s.labels[label] for label in sorted(s.labels))): s.value
        for family in families
        for s in family.samples
    }


def step(**changes: object) -> Event:
    seen = KernelObservation(
        episode_id="e",
        task_id="relu",
        language="triton",
        verdict=Verdict.PASSED,
        stage=Stage.DONE,
        reward=0.5,
        gpu_id="cuda:0",
        eval_s=1.5,
        queue_wait_s=0.2,
        phases={"load": 1.0, "timing": 0.3},
    )
    return replace(step_event("s", seen, "abc"), **changes)  # type: ignore[arg-type]


def test_a_step_is_counted_with_its_reward_and_times() -> None:
    metrics = made()
    metrics.observe(step())
    metrics.observe(step(verdict="incorrect_value", reward=0.0, suspicious=True))
    got = read(metrics)
    assert got["kernel_env_steps_total", "cuda:0", "triton", "passed"] == 1
    assert got["kernel_env_steps_total", "cuda:0", "triton", "incorrect_value"] == 1
    assert (got["kernel_env_reward_count",], got["kernel_env_reward_sum",]) == (2, 0.5)
    assert (got["kernel_env_evaluation_seconds_count",], got["kernel_env_evaluation_seconds_sum",]) == (2, 3.0)
    assert got["kernel_env_wait_seconds_sum",] == pytest.approx(0.4)
    assert got["kernel_env_stage_seconds_sum", "load"] == 2.0
    assert got["kernel_env_suspicious_steps_total",] == 1
    assert got["kernel_env_cached_steps_total",] == 0


def test_what_was_not_evaluated_has_no_time_and_no_reward() -> None:
    metrics = made()
    unscored = {"reward": None, "eval_s": None, "queue_wait_s": None, "phases": None, "gpu_id": None}
    metrics.observe(step(verdict="busy", **unscored))
    metrics.observe(step(verdict="infra_error", **unscored))
    metrics.observe(step(cached=True, eval_s=0.0, queue_wait_s=0.0, phases=None))
    got = read(metrics)
    assert got["kernel_env_steps_total", "none", "triton", "busy"] == 1
    assert got["kernel_env_steps_total", "none", "triton", "infra_error"] == 1
    assert got["kernel_env_cached_steps_total",] == 1
    assert got["kernel_env_evaluation_seconds_count",] == 0
    assert got["kernel_env_reward_count",] == 1


def test_an_episode_is_counted_when_it_begins() -> None:
    metrics = made()
    metrics.observe(reset_event("s", KernelObservation(episode_id="e", language="cuda")))
    got = read(metrics)
    assert got["kernel_env_resets_total", "cuda"] == 1
    assert not any(name[0] == "kernel_env_steps_total" for name in got)


def test_load_and_health_are_those_of_the_moment() -> None:
    got = read(made())
    assert (got["kernel_env_up",], got["kernel_env_isolation_strong",]) == (1, 1)
    assert (got["kernel_env_sessions",], got["kernel_env_sessions_max",]) == (7, 64)
    assert (got["kernel_env_evaluations_waiting",], got["kernel_env_evaluations_running",]) == (3, 5)
    assert [got["kernel_env_device_healthy", gpu_id] for gpu_id in ("cuda:0", "cuda:1")] == [1, 0]
    assert [got["kernel_env_device_busy", gpu_id] for gpu_id in ("cuda:0", "cuda:1")] == [1, 0]
    assert [got["kernel_env_device_assigned", gpu_id] for gpu_id in ("cuda:0", "cuda:1")] == [4, 0]
    assert [got["kernel_env_device_strikes", gpu_id] for gpu_id in ("cuda:0", "cuda:1")] == [0, 3]


def test_a_server_that_cannot_judge_is_not_up() -> None:
    assert read(made(lambda: replace(WELL, fault="the warden ended")))["kernel_env_up",] == 0

    def starting() -> EvaluatorStatus:
        raise EvaluatorError("the server is still starting")

    got = read(made(starting))
    assert got["kernel_env_up",] == 0
    assert ("kernel_env_evaluations_running",) not in got


def test_servers_in_one_process_count_apart() -> None:
    first, second = made(), made()
    first.observe(step())
    assert read(second)["kernel_env_reward_count",] == 0
