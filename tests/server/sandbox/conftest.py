"""Hosts in both modes of isolation."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from server.sandbox import isolation
from server.sandbox.isolation import Isolation
from tests.server.sandbox.candidates import TEST_UIDS, Host, host_in


@pytest.fixture(scope="session")
def found() -> Isolation:
    """What this machine gives."""
    return isolation.available(TEST_UIDS)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes directories that other users can reach."""

    def make(name: str) -> Path:
        path = tmp_path_factory.mktemp(name)
        for part in (path, *path.parents):
            if part.parent == part or part.stat().st_uid != os.getuid() or part.stat().st_mode & 0o001:
                continue
            part.chmod(part.stat().st_mode | 0o111)
        return path

    return make


@pytest.fixture(scope="module")
def strong(found: Isolation, place: Callable[[str], Path]) -> Iterator[Host]:
    """A host that gives each candidate its uid."""
    if not found.uid:
        pytest.skip("candidates cannot have a uid of their own here: " + "; ".join(found.missing))
    yield from host_in(found, place("strong"))


@pytest.fixture(scope="module", params=["strong", "weak"])
def host(request: pytest.FixtureRequest, found: Isolation, place: Callable[[str], Path]) -> Iterator[Host]:
    """A host in each of both modes."""
    if request.param == "strong" and not found.uid:
        pytest.skip("candidates cannot have a uid of their own here: " + "; ".join(found.missing))
    weak = Isolation(False, found.landlock_abi, found.seccomp, found.no_new_privs, ("no uid, for a test",))
    yield from host_in(found if request.param == "strong" else weak, place(request.param))
