"""A few thousand random inputs, the same every time; `bench.fuzz` tries for as long as one likes."""

import asyncio
import logging
import random

import pytest

from server.testing import FakeEvaluator
from tests import fuzzing
from tests.server.test_app import get, until
from tests.serving import serving


def test_packets_decode_within_their_limits_or_not_at_all() -> None:
    outcomes = {fuzzing.try_packet(fuzzing.packet(source)) for source in fuzzing.seeds(1, 4000)}
    assert outcomes == fuzzing.REPLIES


def test_texts_end_in_a_finding_or_pass() -> None:
    outcomes = {fuzzing.try_text(fuzzing.text(source)) for source in fuzzing.seeds(2, 1000)}
    assert {"accepted", "unparsable"} <= outcomes


def test_frames_are_answered_and_no_session_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    async def all_at_once(url: str) -> int:
        talks = (fuzzing.converse(url, random.Random(f"frames/{number}"), frames=20) for number in range(40))
        return sum(await asyncio.gather(*talks))

    with caplog.at_level(logging.ERROR), serving(FakeEvaluator()) as url:
        before = get(f"{url}/capacity")[1]["free_sessions"]
        answered = asyncio.run(all_at_once(url))
        until(lambda: get(f"{url}/capacity")[1]["free_sessions"] == before)
        assert get(f"{url}/health")[0] == 200
    assert answered > 300
    assert [record.message for record in caplog.records if record.exc_info] == []
