"""The allocator for CPU outputs, built and installed once: it stays in the process."""

import pytest

from server.candidate.build import build_arena
from server.candidate.memory import CpuMemory


@pytest.fixture(scope="session")
def cpu_memory(tmp_path_factory: pytest.TempPathFactory) -> CpuMemory:
    """Memory of a candidate in this process; tests map what they need."""
    return CpuMemory(build_arena("cpu", tmp_path_factory.mktemp("arena")))
