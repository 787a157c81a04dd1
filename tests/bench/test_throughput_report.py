"""Tables about many sessions: rates count what was judged, ratios are against the fewest sessions."""

from typing import Any

import pytest

from bench.throughput import pairs_of
from bench.throughput_report import percentile, rate, section


def step(verdict: str = "passed", t_new_ms: float | None = 2.0, **changes: Any) -> dict[str, Any]:
    seconds = {"wall_s": 3.0, "wait_s": 1.0, "eval_s": 2.0}
    return {"file": "relu.py", "verdict": verdict, "t_new_ms": t_new_ms, **seconds, **changes}


def load(sessions: int, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"sessions": sessions, "wall_s": 30.0, "device_busy": 0.5, "server_cpu_s": 0.1, "steps": list(steps)}


def document(*loads: dict[str, Any]) -> dict[str, Any]:
    machine = {"gpu": "none", "device": "some CPU", "cpu_cores": 2, "torch": "2.13.0", "date": "2026-12-01"}
    idle = {"sessions": 64, "mib_per_session": 0.5, "cpu_s_per_session_hour": 1.0}
    return {"machine": machine, "start_s": 5.0, "start_to_first_s": 9.0, "idle": idle, "loads": list(loads)}


def test_only_what_was_judged_counts_for_the_rate() -> None:
    nothing = {"t_new_ms": None, "wait_s": None, "eval_s": None}
    steps = [step(), step("incorrect_value"), step("busy", **nothing), step("infra_error", **nothing)]
    assert rate(load(4, *steps)) == 4.0


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 5), (95, 10), (100, 10)])
def test_percentiles_are_values_that_were_seen(percent: float, value: float) -> None:
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], percent) == value


def test_rows_hold_rates_and_ratios() -> None:
    text = section([document(load(1, step(), step()), load(16, step(t_new_ms=2.1), step("timeout", None)))])
    assert "| 1 | 2 | 4.0 | 1.00 | 1.00 | 2.00 | 2.00 | 50 % | 0 | 50 |" in text
    assert "| 16 | 2 | 4.0 | 1.00 | 1.00 | 2.00 | 2.00 | 50 % | 1 | 50 |" in text
    assert "| `relu.py` | 2 | 1.050 |" in text
    assert "**some CPU**, 2 cores" in text


def test_without_a_measurement_there_is_no_section() -> None:
    assert section([]) == ""


def test_an_argument_names_a_task_and_a_file() -> None:
    (pair,) = pairs_of(["relu=examples/kernels/relu_cpp.py"])
    assert (pair.task_id, pair.file) == ("relu", "relu_cpp.py")
    assert "class ModelNew" in pair.code
