"""The evaluator of the session."""

from collections.abc import Iterator

import pytest

from server.evaluator.evaluator import Evaluator
from tests.evaluations import small_settings


@pytest.fixture(scope="session")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    """A real evaluator on the CPU device; started once, since its programs import torch."""
    made = Evaluator(small_settings(tmp_path_factory.mktemp("cache")))
    yield made
    made.close()
