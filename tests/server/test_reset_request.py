"""What `reset()` accepts, and that everything else is refused with what to send instead."""

from typing import Any

import pytest

from kernel_env.terms import Language, Split
from server.errors import InvalidRequest
from server.reset_request import ResetRequest, require_offered
from server.tasks.registry import load_tasks


def test_the_same_seed_names_the_same_task_and_seeds_count_through_the_split() -> None:
    tasks = load_tasks()
    train = tasks.select(split=Split.TRAIN)
    chosen = [ResetRequest.parse(seed, None, {}).choose(load_tasks()).task.task_id for seed in range(2 * len(train))]
    assert chosen == [task.task_id for task in train] * 2


def test_row_index_stands_in_for_a_seed_and_a_seed_wins() -> None:
    assert ResetRequest.parse(None, None, {"row_index": 7}).seed == 7
    assert ResetRequest.parse(3, None, {"row_index": 7}).seed == 3


def test_evaluation_selects_the_eval_split() -> None:
    choice = ResetRequest.parse(0, None, {"evaluation": True}).choose(load_tasks())
    assert choice.task.split is Split.EVAL
    assert ResetRequest.parse(0, None, {"evaluation": False}).choose(load_tasks()).task.split is Split.TRAIN


def test_without_seed_and_task_a_training_task_is_drawn() -> None:
    choice = ResetRequest.parse(None, None, {}).choose(load_tasks())
    assert choice.task.split is Split.TRAIN
    assert choice.dataset_size == len(load_tasks().select(split=Split.TRAIN))


@pytest.mark.parametrize(
    ("seed", "options", "says"),
    [
        (-1, {}, "seed is -1"),
        (1.5, {}, "seed is 1.5"),
        (True, {}, "seed is True"),
        ("7", {}, "seed is '7'"),
        (2**63, {}, "seed is"),
        (None, {"splitt": "train"}, "Did you mean 'split'"),
        (None, {"anything": 1}, "Allowed: seed, episode_id, task_id"),
        (None, {"split": "test"}, "send one of: train, eval, reserved"),
        (None, {"split": ["train"]}, "send one of: train"),
        (None, {"language": "rust"}, "send one of: triton, cuda, cpp"),
        (None, {"level": "1"}, "level is '1'"),
        (None, {"max_turns": {}}, "max_turns is {}"),
        (None, {"evaluation": 1}, "send true or false"),
        (None, {"evaluation": True, "split": "train"}, "send one of them"),
        (None, {"task_id": ""}, "send text of 1 to 255"),
        (None, {"task_id": "x" * 5000}, "send text of 1 to 255"),
    ],
)
def test_a_malformed_request_is_refused(seed: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ResetRequest.parse(seed, None, options)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_unknown_task_is_refused_with_the_nearest_ones() -> None:
    with pytest.raises(InvalidRequest, match="relu"):
        ResetRequest.parse(None, None, {"task_id": "relo"}).choose(load_tasks())


def test_a_task_of_another_split_or_level_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="of split 'train'"):
        ResetRequest.parse(None, None, {"task_id": "relu", "split": "eval"}).choose(load_tasks())
    with pytest.raises(InvalidRequest, match="of level 1"):
        ResetRequest.parse(None, None, {"task_id": "relu", "level": 2}).choose(load_tasks())


def test_a_level_without_tasks_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="level 9"):
        ResetRequest.parse(0, None, {"level": 9}).choose(load_tasks())


def test_a_language_must_be_offered_by_the_device() -> None:
    offered = (Language.CPP, Language.TRITON)
    assert require_offered(" CPP ", offered) is Language.CPP
    assert ResetRequest.parse(None, None, {}).language_of(offered) is Language.CPP
    with pytest.raises(InvalidRequest, match="send one of: cpp, triton"):
        ResetRequest.parse(None, None, {"language": "cuda"}).language_of(offered)


def test_turns_are_limited_by_the_server() -> None:
    assert ResetRequest.parse(None, None, {}).turns_within(4) == 4
    assert ResetRequest.parse(None, None, {"max_turns": 2}).turns_within(4) == 2
    for turns in (0, 5):
        with pytest.raises(InvalidRequest, match="1 to 4"):
            ResetRequest.parse(None, None, {"max_turns": turns}).turns_within(4)
