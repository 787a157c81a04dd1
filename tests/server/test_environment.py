"""Reset, step and state of one session, over an evaluator that answers from a script."""

import math
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kernel_env.models import KernelAction, Language, Stage, Verdict
from server.connections import CONNECTION_OPTION, Connections
from server.environment import KernelEnvironment, Services
from server.errors import Busy, EvaluatorError, InvalidRequest
from server.evaluator.interface import DeviceInfo
from server.evaluator.results import EvalResult
from server.events import EventLog
from server.tasks.registry import load_tasks
from server.testing import FakeEvaluator, failed, passed

GPU = DeviceInfo(gpu_id="cuda:0", kind="cuda", name="fake GPU")


def environment(
    evaluator: FakeEvaluator,
    *,
    max_turns: int = 4,
    step_budget_s: float | None = None,
    events: EventLog | None = None,
    connections: Connections | None = None,
) -> KernelEnvironment:
    services = Services(
        evaluation=evaluator,
        tasks=load_tasks(),
        events=events or EventLog(fd=None),
        connections=connections or Connections(),
        max_turns=max_turns,
        step_budget_s=step_budget_s,
    )
    return KernelEnvironment(lambda: services)


def code(number: int) -> KernelAction:
    return KernelAction(code=f"x = {number}")


def test_reset_gives_the_task_and_the_device() -> None:
    env = environment(FakeEvaluator(device=GPU))
    seen = env.reset(task_id="relu", seed=3, episode_id="mine")
    assert seen.episode_id == "mine"
    assert (seen.task_id, seen.level, seen.seed, seen.turn, seen.max_turns) == ("relu", 1, 3, 0, 4)
    assert (seen.gpu_id, seen.device, seen.language, seen.isolation) == ("cuda:0", "fake GPU", "triton", "weak")
    assert seen.problem == seen.prompt != ""
    assert (seen.reward, seen.done, seen.verdict) == (None, False, None)


def test_a_passing_step_fills_every_field_of_the_result() -> None:
    env = environment(FakeEvaluator([passed(t_new_ms=2.0, t_ref_ms=4.0, t_min_ms=1.0)]))
    env.reset(task_id="relu")
    seen = env.step(code(1))
    assert (seen.turn, seen.done, seen.stage, seen.verdict, seen.correct) == (
        1,
        False,
        Stage.DONE,
        Verdict.PASSED,
        True,
    )
    assert (seen.speedup, seen.roofline_frac, seen.ref_roofline_frac) == (2.0, 0.5, 0.25)
    assert (seen.t_new_ms, seen.t_ref_ms, seen.t_min_ms, seen.bound) == (2.0, 4.0, 1.0, "memory")
    assert seen.arithmetic_intensity == pytest.approx(0.125)
    assert (seen.timing, seen.timed_calls, seen.timed_repetitions) == ("eager", 10, 10)
    assert seen.reward == pytest.approx(0.3 + 2.7 * 0.5)
    assert seen.rubric_scores == {"static": 1.0, "compile": 1.0, "correct": 1.0, "speed": 0.5}
    assert seen.best_reward == seen.reward == seen.reward_gain
    assert seen.problem == ""
    assert seen.prompt == seen.feedback == "Correct."
    assert (seen.eval_s, seen.phases, seen.gpu_id) == (0.25, {"compile": 0.15, "timing": 0.1}, "cpu")
    assert not seen.suspicious


def test_an_interpreted_kernel_has_no_time_and_earns_no_speed() -> None:
    env = environment(FakeEvaluator([passed(mode="interpreted")]))
    env.reset(task_id="relu")
    seen = env.step(code(1))
    assert seen.reward == pytest.approx(0.3)
    assert (seen.timing, seen.speedup, seen.t_new_ms, seen.roofline_frac) == ("interpreted", None, None, None)
    assert seen.t_min_ms == 1.0


def test_numbers_that_are_not_finite_become_null() -> None:
    env = environment(FakeEvaluator([passed(t_new_ms=math.nan, t_ref_ms=math.inf)]))
    env.reset(task_id="relu")
    seen = env.step(code(1))
    assert (seen.t_new_ms, seen.t_ref_ms, seen.speedup, seen.roofline_frac) == (None, None, None, None)
    assert seen.reward == pytest.approx(0.3)


def test_a_time_below_the_floor_or_a_huge_speedup_is_marked() -> None:
    env = environment(FakeEvaluator([passed(t_new_ms=0.5), passed(t_new_ms=2.0, t_ref_ms=102.0)]))
    env.reset(task_id="relu")
    assert env.step(code(1)).suspicious
    assert env.step(code(2)).suspicious


def test_feedback_with_broken_text_is_sent_all_the_same() -> None:
    env = environment(FakeEvaluator([failed(Verdict.COMPILE_ERROR, Stage.COMPILE, "bad \ud800" + "x" * 100_000)]))
    env.reset(task_id="relu")
    seen = env.step(code(1))
    assert seen.feedback.startswith("bad ?")
    assert len(seen.feedback) < 17_000
    assert "cut after" in seen.feedback
    assert seen.model_dump_json()


def test_the_episode_ends_after_its_turns_and_then_refuses() -> None:
    env = environment(FakeEvaluator([failed(Verdict.INCORRECT_VALUE)]), max_turns=2)
    env.reset(task_id="relu")
    assert not env.step(code(1)).done
    last = env.step(code(2))
    assert (last.done, last.truncated, last.reward) == (True, True, 0.0)
    with pytest.raises(InvalidRequest, match=r"over: call reset"):
        env.step(code(3))
    assert env.reset(task_id="relu").turn == 0


def test_a_last_turn_that_passes_is_done_and_not_truncated() -> None:
    env = environment(FakeEvaluator(), max_turns=1)
    env.reset(task_id="relu")
    seen = env.step(code(1))
    assert (seen.done, seen.truncated) == (True, False)


def test_step_before_reset_and_on_a_closed_session_are_refused() -> None:
    env = environment(FakeEvaluator())
    with pytest.raises(InvalidRequest, match=r"call reset\(\) before step\(\)"):
        env.step(code(1))
    env.reset(task_id="relu")
    env.close()
    with pytest.raises(InvalidRequest, match="closed"):
        env.step(code(1))
    with pytest.raises(InvalidRequest, match="closed"):
        env.reset(task_id="relu")


def test_a_refused_reset_leaves_the_episode_running() -> None:
    env = environment(FakeEvaluator())
    env.reset(task_id="relu", episode_id="first")
    env.step(code(1))
    for options in ({"task_id": "nope"}, {"task_id": "relu", "language": "cuda"}, {"typo": 1}, {"max_turns": 99}):
        with pytest.raises(InvalidRequest):
            env.reset(**options)
    seen = env.step(code(2))
    assert (seen.episode_id, seen.turn) == ("first", 2)


def test_an_unknown_language_of_a_step_is_refused_and_uses_no_turn() -> None:
    env = environment(FakeEvaluator())
    env.reset(task_id="relu")
    for language in ("cuda", "rust"):
        with pytest.raises(InvalidRequest, match="cpp, triton"):
            env.step(KernelAction(code="x", language=language))
    assert env.step(KernelAction(code="x", language="triton")).turn == 1


def test_language_is_read_off_the_code_else_taken_from_the_episode() -> None:
    evaluator = FakeEvaluator()
    env = environment(evaluator)
    env.reset(task_id="relu")
    env.step(KernelAction(code="import triton\n"))
    env.step(KernelAction(code="x = 1"))
    assert [call.language for call in evaluator.calls] == [Language.TRITON, Language.CPP]


def test_a_fenced_block_is_taken_out_of_the_reply() -> None:
    evaluator = FakeEvaluator()
    env = environment(evaluator)
    env.reset(task_id="relu")
    env.step(KernelAction(code="Here it is:\n```python\nclass ModelNew: pass\n```\nDone."))
    assert evaluator.calls[0].code.strip() == "class ModelNew: pass"


def test_identical_code_returns_the_stored_result_and_uses_a_turn() -> None:
    evaluator = FakeEvaluator([passed(), failed(Verdict.INCORRECT_VALUE)])
    env = environment(evaluator)
    env.reset(task_id="relu")
    first, again = env.step(code(1)), env.step(code(1))
    assert len(evaluator.calls) == 1
    assert (again.cached, again.turn, again.reward, again.verdict) == (True, 2, first.reward, first.verdict)
    assert (again.eval_s, again.queue_wait_s, again.reward_gain) == (0.0, 0.0, 0.0)
    env.reset(task_id="relu")
    assert not env.step(code(1)).cached


@pytest.mark.parametrize(
    ("fault", "verdict"), [(Busy("queue is long"), Verdict.BUSY), (EvaluatorError("judge died"), Verdict.INFRA_ERROR)]
)
def test_our_fault_earns_none_and_keeps_the_turn(fault: Exception, verdict: Verdict) -> None:
    env = environment(FakeEvaluator([fault, passed()]))
    env.reset(task_id="relu")
    seen = env.step(code(1))
    assert (seen.verdict, seen.reward, seen.done, seen.turn) == (verdict, None, False, 0)
    assert (seen.stage, seen.correct, seen.rubric_scores, seen.reward_gain) == (None, None, {}, 0.0)
    assert seen.infra_error == str(fault)
    assert "same code again" in seen.feedback
    assert env.state.history == []
    again = env.step(code(1))
    assert (again.turn, again.cached, again.verdict) == (1, False, Verdict.PASSED)


def test_a_busy_answer_says_when_to_come_back() -> None:
    env = environment(FakeEvaluator([Busy("64 evaluations wait", 12.5), passed()]))
    env.reset(task_id="relu")
    assert env.step(code(1)).retry_after_s == 12.5
    assert env.step(code(1)).retry_after_s is None


def test_an_unforeseen_exception_is_our_fault_and_its_text_stays_here(caplog: pytest.LogCaptureFixture) -> None:
    env = environment(FakeEvaluator([KeyError("/secret/path")]))
    env.reset(task_id="relu")
    seen = env.step(code(1))
    assert (seen.verdict, seen.reward) == (Verdict.INFRA_ERROR, None)
    assert "secret" not in seen.model_dump_json()
    assert "secret" in caplog.text


def test_the_third_infra_error_in_a_row_ends_the_episode() -> None:
    env = environment(FakeEvaluator([EvaluatorError("broken")]))
    env.reset(task_id="relu")
    assert [env.step(code(1)).done for _ in range(3)] == [False, False, True]
    assert env.state.turn == 0
    with pytest.raises(InvalidRequest, match="over"):
        env.step(code(1))


def test_a_scored_step_starts_the_count_of_infra_errors_anew_and_busy_never_counts() -> None:
    broken, busy = EvaluatorError("broken"), Busy("busy")
    env = environment(FakeEvaluator([broken, broken, passed(), broken, broken, busy, busy, busy, passed()]))
    env.reset(task_id="relu")
    assert not any(env.step(code(number)).done for number in range(9))


def test_best_reward_and_its_gains_add_up() -> None:
    results: list[EvalResult | Exception] = [
        failed(Verdict.INCORRECT_VALUE),
        passed(t_new_ms=4.0),
        EvaluatorError("x"),
        passed(t_new_ms=8.0),
        passed(t_new_ms=2.0),
    ]
    env = environment(FakeEvaluator(results), max_turns=9)
    env.reset(task_id="relu")
    seen = [env.step(code(number)) for number in range(5)]
    gains = [one.reward_gain or 0.0 for one in seen]
    assert sum(gains) == pytest.approx(seen[-1].best_reward)
    assert gains[2] == gains[3] == 0.0
    assert [one.best_reward for one in seen][:2] == [0.0, pytest.approx(0.3 + 2.7 * 0.25)]


def test_state_tells_the_history() -> None:
    env = environment(FakeEvaluator([failed(Verdict.TIMEOUT, Stage.COMPILE), EvaluatorError("x"), passed()]))
    assert env.state.dataset_size == len(load_tasks().select(split="train"))
    env.reset(task_id="relu", episode_id="e")
    for number in range(3):
        env.step(code(number))
    state = env.state
    assert (state.episode_id, state.step_count, state.turn, state.max_turns) == ("e", 3, 2, 4)
    assert [(one.turn, one.verdict) for one in state.history] == [(1, Verdict.TIMEOUT), (2, Verdict.PASSED)]
    assert state.best_speedup == 2.0
    assert len(state.history[0].code_sha) == 64


def test_busy_is_answered_when_the_step_budget_is_over() -> None:
    evaluator = FakeEvaluator(hold=threading.Event())
    env = environment(evaluator, step_budget_s=0.05)
    env.reset(task_id="relu")
    assert env.step(code(1)).verdict is Verdict.BUSY
    assert evaluator.calls[0].start_within_s == 0.05


@pytest.mark.parametrize("how", ["closed", "disconnected"])
def test_a_waiting_step_gives_up_when_nobody_waits_for_it(how: str) -> None:
    connections = Connections()
    name = connections.open()
    evaluator = FakeEvaluator(hold=threading.Event())
    env = environment(evaluator, connections=connections)
    options: dict[str, Any] = {"task_id": "relu", CONNECTION_OPTION: name}
    env.reset(**options)
    thread = threading.Thread(target=env.step, args=(code(1),))
    thread.start()
    while not evaluator.calls:
        time.sleep(0.005)
    env.close() if how == "closed" else connections.leave(name)
    thread.join(2.0)
    assert not thread.is_alive()


def test_every_reset_and_step_leaves_an_event(tmp_path: Path) -> None:
    path = tmp_path / "log"
    env = environment(FakeEvaluator([passed(), Busy("x")]), events=EventLog(path, fd=None))
    env.reset(task_id="relu")
    env.step(code(1))
    env.step(code(2))
    lines = path.read_text().splitlines()
    assert ["reset" in lines[0], "passed" in lines[1], "busy" in lines[2]] == [True, True, True]


def test_building_one_starts_nothing_and_metadata_needs_no_services() -> None:
    def not_yet() -> Services:
        raise EvaluatorError("the server is still starting")

    env = KernelEnvironment(not_yet)
    assert env.get_metadata().name == "kernel_env"
    assert env.state.episode_id is None
    with pytest.raises(EvaluatorError, match="still starting"):
        env.reset()
