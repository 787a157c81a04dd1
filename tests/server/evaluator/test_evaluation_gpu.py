"""Submissions on a real GPU: the path of a file in tests/corpus/gpu states what must come out."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_env.terms import Language, Precision, Split, Stage, Verdict
from server.evaluator.evaluator import Evaluator
from server.evaluator.results import Submission
from server.settings import Settings
from server.tasks.task import Task

pytestmark = pytest.mark.gpu

CORPUS = sorted((Path(__file__).parents[2] / "corpus" / "gpu" / "relu").glob("*.py"))
SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(4096, 4096)]


def get_init_inputs():
    return []
"""
TASK = Task("relu_for_tests", 1, Split.RESERVED, Precision.IEEE, SOURCE)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    """One evaluator on the GPU for every case."""
    settings = {"KERNEL_ENV_RUN_TIMEOUT_S": "15", "KERNEL_ENV_COMPILE_TIMEOUT_S": "20", "KERNEL_ENV_DEVICES": "cuda:0"}
    made = Evaluator(Settings.from_environ({**os.environ, **settings}))
    yield made
    made.close()


def language_of(code: str) -> Language:
    """Triton or CUDA, by what it imports."""
    return Language.TRITON if "import triton" in code else Language.CUDA


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_verdict_is_the_one_the_path_states(evaluator: Evaluator, path: Path) -> None:
    """Each hostile case is followed by an honest one, which must pass as if nothing had been."""
    code = path.read_text()
    result = evaluator.evaluate(TASK, Submission(code, language_of(code)))

    expected = max((v.value for v in Verdict if path.stem.startswith(v.value)), key=len)
    assert (expected, result.verdict.value) == (expected, expected), result.feedback
    assert (result.stage is Stage.DONE) == (result.verdict is Verdict.PASSED)

    honest = (path.parent / "passed_honest.py").read_text()
    after = evaluator.evaluate(TASK, Submission(f"{honest}\n# after {path.stem}\n", Language.TRITON))
    assert after.verdict is Verdict.PASSED, after.feedback
    assert after.timing is not None
    assert after.timing.mode == "graph"


def test_isolation_on_this_host_is_strong(evaluator: Evaluator) -> None:
    assert evaluator.status().isolation == "strong"
