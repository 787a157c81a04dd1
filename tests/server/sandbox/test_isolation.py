"""The level of isolation follows from what the host gives."""

from dataclasses import replace

import pytest

from server.sandbox.isolation import Isolation, Level, available
from server.sandbox.limits import Limits

STRONG = Isolation(uid=True, landlock_abi=7, seccomp=True, no_new_privs=True, missing=())


def test_everything_is_strong() -> None:
    assert STRONG.level is Level.STRONG


@pytest.mark.parametrize("lacking", [{"uid": False}, {"landlock_abi": 0}, {"seccomp": False}, {"no_new_privs": False}])
def test_one_lacking_protection_is_weak(lacking: dict[str, bool | int]) -> None:
    assert replace(STRONG, **lacking).level is Level.WEAK  # type: ignore[arg-type]


def test_weak_host_says_what_is_missing(found: Isolation) -> None:
    assert found.level is Level.STRONG or found.missing


def test_uid_of_root_is_never_available() -> None:
    assert not available(0).uid


@pytest.mark.parametrize("name", Limits.__slots__)
def test_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Limits(**{name: 0})
