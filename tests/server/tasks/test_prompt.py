"""What a prompt tells an agent."""

import dataclasses

import pytest

from kernel_env.terms import Language, Precision
from server.tasks.prompt import build_prompt
from server.tasks.registry import load_tasks

TASKS = load_tasks()


def prompt(task_id: str = "relu", language: Language = Language.TRITON, turns: int = 4, kind: str = "cuda") -> str:
    return build_prompt(TASKS.get(task_id), language, turns, device_kind=kind, device_name="NVIDIA H200")


def test_it_shows_the_task_at_the_size_of_the_device() -> None:
    assert TASKS.get("relu").source_for("cuda") in prompt(kind="cuda")
    assert TASKS.get("relu").source_for("cpu") in prompt(kind="cpu")


def test_it_declares_further_sizes_and_shows_none() -> None:
    assert "are always those of `get_inputs()`" in prompt()
    assert "judged at" not in prompt()
    for kind, others in (("cuda", "3 sizes, each in a process of its own: the one above, and 2 "), ("cpu", "2 sizes")):
        text = prompt("cumsum", kind=kind)
        assert others in text
        assert "`rows`, `dim`" in text
        assert "MORE_" not in text
        assert all(sized.source not in text for sized in TASKS.get("cumsum").at_sizes(kind)[1:])


def test_it_states_device_turns_and_reward() -> None:
    text = prompt(turns=7)
    assert "NVIDIA H200" in text
    assert "7 submissions" in text
    assert "0.3 + 2.7 * min(t_min / t, 1)" in text


@pytest.mark.parametrize("precision", list(Precision))
def test_it_states_the_precision_contract(precision: Precision) -> None:
    task = dataclasses.replace(TASKS.get("relu"), precision=precision)
    text = build_prompt(task, Language.TRITON, 4, device_kind="cuda", device_name="GPU")
    assert f"Precision contract `{precision.value}`" in text


@pytest.mark.parametrize(
    "promise",
    [
        "load_state_dict",
        "names and shapes of the reference's",
        "Do not derive tensors from them in `__init__`",
        "Return a new tensor",
        "Leave the inputs as they are",
        "Dropout is off",
        "repeated, up to 1000",
        "CUDA graph",
        "kernels of your own",
    ],
)
def test_every_promise_is_made(promise: str) -> None:
    assert promise in prompt()


@pytest.mark.parametrize("language", [Language.CUDA, Language.CPP])
def test_native_languages_are_offered_the_fast_way(language: Language) -> None:
    text = prompt(language=language)
    assert "kernel_env.native.load" in text
    assert "20 s or more" in text


@pytest.mark.parametrize("language", list(Language))
def test_the_example_is_in_the_language_asked_for(language: Language) -> None:
    marks = {Language.TRITON: "@triton.jit", Language.CUDA: "__global__ void", Language.CPP: "#pragma omp"}
    text = prompt(language=language)
    assert [found for found, mark in marks.items() if mark in text] == [language]


def test_the_example_is_another_operator_than_the_task() -> None:
    assert "scale_shift_kernel" in prompt()
    task = dataclasses.replace(TASKS.get("relu"), task_id="level1/7_ScaleShift")
    text = build_prompt(task, Language.TRITON, 4, device_kind="cuda", device_name="GPU")
    assert "scale_shift_kernel" not in text
    assert "add_kernel" in text


def test_interpreted_triton_says_that_it_is_not_timed() -> None:
    assert "not timed" in prompt(kind="cpu")
    assert "not timed" not in prompt(kind="cuda")


@pytest.mark.parametrize("task", tuple(TASKS), ids=lambda task: task.task_id)
def test_no_template_field_is_left_open(task: object) -> None:
    for language in Language:
        for kind in ("cuda", "cpu"):
            text = prompt(getattr(task, "task_id"), language, kind=kind)  # noqa: B009
            assert "{language}" not in text
            assert "{stream}" not in text
            assert len(text) < 12_000
