"""Cards of tasks: what is measured, what counts as a fault, and that a run goes on where it was cut off."""

import json
from pathlib import Path
from typing import Any

import pytest

from kernel_env.terms import Precision, Split
from server.tasks.cards import Card, audit, faults_of, key_of, read_cards
from server.tasks.task import Task

SOURCE = """import os
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        BODY


def get_inputs():
    return [torch.rand(256, 256)]


def get_init_inputs():
    return []
"""


def task(task_id: str, body: str) -> Task:
    return Task(task_id, 1, Split.RESERVED, Precision.TF32, SOURCE.replace("BODY", body))


GOOD = task("product", "return x @ x")
BAD = task("number", "return x.sum().item()")
DEADLY = task("deadly", "os.kill(os.getpid(), 9)")
SLOW = task("slow", "import time; time.sleep(600)")


def card(**changes: Any) -> Card:
    shortcuts = {"zeros": [], "input": "no input has the shape and type of the output", "constant": ["as_given"]}
    fine = {
        "refused": None,
        "two_runs": "equal",
        "distributions": ["as_given", "normal"],
        "shortcuts": shortcuts,
        "own_output_fails": [],
        "floor_ms": 1.0,
        "eager_ms": 2.0,
        "graph_ms": None,
        "compiled_ms": "no compiler",
    }
    return {**fine, **changes}


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({}, []),
        ({"refused": "too large"}, ["refused: too large"]),
        ({"two_runs": "different"}, ["two calls differ"]),
        ({"two_runs": "close"}, []),
        ({"shortcuts": {"zeros": ["as_given", "normal"], "constant": ["normal"]}}, ["passes: zeros"]),
        ({"own_output_fails": ["normal"]}, ["PyTorch's own output fails: normal"]),
        ({"eager_ms": 0.96}, []),
        ({"eager_ms": 0.9}, ["PyTorch takes 0.90 of the floor"]),
        ({"graph_ms": 0.5}, ["PyTorch takes 0.50 of the floor"]),
        ({"compiled_ms": 0.25}, ["PyTorch takes 0.25 of the floor"]),
    ],
)
def test_faults_of_a_card(changes: dict[str, Any], faults: list[str]) -> None:
    assert faults_of(card(**changes)) == faults


def test_key_depends_on_all_that_is_measured_and_on_the_kind_of_device() -> None:
    others = [task("product", "return x + x"), task("other", "return x @ x")]
    keys = {key_of(GOOD, "cpu"), key_of(GOOD, "cuda"), *(key_of(other, "cpu") for other in others)}
    assert len(keys) == 4
    assert key_of(task("product", "return x @ x"), "cpu") == key_of(GOOD, "cpu")


def test_no_file_holds_no_cards(tmp_path: Path) -> None:
    assert read_cards(tmp_path / "none.jsonl") == {}


def test_every_task_gets_a_card_once_and_a_task_that_ends_the_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cards.jsonl"
    cards = audit([GOOD, BAD, DEADLY, SLOW], "cpu", file, task_timeout_s=5.0)
    assert [found["task"] for found in cards] == ["product", "number", "deadly", "slow"]
    good, bad, deadly, slow = cards
    assert faults_of(slow) == ["refused: no answer in time"]
    assert (good["refused"], faults_of(good)) == (None, [])
    assert (good["flops"], good["input_bytes"], good["output_bytes"]) == (2 * 256**3, 4 * 256**2, 4 * 256**2)
    assert good["floor_ms"] == pytest.approx(max(good["terms_ms"].values()))
    assert 0 < good["floor_ms"] < 10 * good["eager_ms"]
    assert good["output_rms"] == pytest.approx(64.0, rel=0.05)  # a sum of 256 products of uniform numbers
    assert deadly["refused"] == "the process ended with SIGKILL"
    assert "the reference returns a float" in bad["refused"]
    assert all(found["device"] for found in cards)
    before = file.read_text()
    told: list[Card] = []
    assert audit([GOOD, BAD], "cpu", file, limit_s=0.0, tell=told.append) == [good, bad]  # nothing is started
    assert told == [good, bad]
    assert file.read_text() == before
    assert [json.loads(line)["task"] for line in before.splitlines()] == ["product", "number", "deadly", "slow"]


def test_none_is_begun_after_the_limit(tmp_path: Path) -> None:
    assert audit([GOOD], "cpu", tmp_path / "cards.jsonl", limit_s=0.0) == []
