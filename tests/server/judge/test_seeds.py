"""Hidden values follow from one secret, and tell nothing of one another."""

import pytest

from server.judge.distributions import Distribution
from server.judge.seeds import Seeds

KINDS = [Distribution.NORMAL, Distribution.SPIKY]


def test_secrets_are_new_every_time() -> None:
    secrets = {Seeds().secret for _ in range(50)}
    assert len(secrets) == 50
    assert all(len(secret) == 64 for secret in secrets)


def test_the_same_secret_gives_the_same_values() -> None:
    first = Seeds()
    again = Seeds(first.secret)
    assert again.draws(KINDS, range(5), "trial", 1) == first.draws(KINDS, range(5), "trial", 1)
    assert again.source("order").random() == first.source("order").random()


def test_draws_of_another_label_call_or_secret_differ_and_use_every_kind() -> None:
    seeds = Seeds()
    draws = [
        *seeds.draws(KINDS, range(100), "trial", 1).values(),
        *seeds.draws(KINDS, range(100), "trial", 2).values(),
        *seeds.draws(KINDS, range(100), "trial", 12).values(),
        *Seeds().draws(KINDS, range(100), "trial", 1).values(),
    ]
    assert len({draw.seed for draw in draws}) == 400
    assert {draw.distribution for draw in draws} == set(KINDS)
    assert all(0 <= draw.seed < 2**63 for draw in draws)
    assert max(draw.seed for draw in draws) > 2**60


@pytest.mark.parametrize("secret", ["", "00", "zz" * 32])
def test_other_text_is_no_secret(secret: str) -> None:
    with pytest.raises(ValueError, match=r"secret|hexadecimal"):
        Seeds(secret)
