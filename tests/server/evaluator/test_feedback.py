"""What an agent reads: says what to change, is bounded, and holds no directory of the host."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_env.terms import UNSCORED, Verdict
from server.evaluator.feedback import (
    MAX_FEEDBACK_CHARS,
    MAX_LOG_CHARS,
    at_size,
    bounded,
    for_all_sizes,
    for_failure,
    for_pass,
    tail_of,
)
from server.evaluator.results import Roofline, Timing

FLOOR = Roofline(min_ms=0.5, bound="memory", bytes_moved=1e9, flops=0.0)


def timing(new_ms: float, mode: str = "graph") -> Timing:
    return Timing(mode, new_ms, 0.9 * new_ms, 1.1 * new_ms, calls=8, repetitions=16, ref_ms=2.0, ref_eager_ms=2.5)


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - UNSCORED))
def test_a_failure_begins_with_its_verdict(verdict: Verdict) -> None:
    assert for_failure(verdict, " what happened\n", "").startswith(f"{verdict.value}: what happened")
    assert for_failure(verdict, "  ", "").startswith(f"{verdict.value}.")


def test_the_end_of_the_log_is_shown_when_there_is_one() -> None:
    text = for_failure(Verdict.RUNTIME_ERROR, "boom", "  printed\n")
    assert text == "runtime_error: boom\nOutput of the submission (end):\nprinted"
    assert "Output" not in for_failure(Verdict.RUNTIME_ERROR, "boom", " \n")


def test_of_several_sizes_each_is_named() -> None:
    assert at_size("passed", 1, 1) == "passed"
    assert at_size("passed", 1, 3) == "At size 1 of 3, the one you were shown: passed"
    assert at_size("timeout", 3, 3) == "At size 3 of 3, another than you were shown: timeout"
    assert for_all_sizes("fast", ["one", "two"]) == "Over 2 sizes: fast\none\ntwo"


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        (Verdict.TIMEOUT, "loop"),
        (Verdict.OUT_OF_MEMORY, "less memory"),
        (Verdict.DEVICE_FAULT, "index"),
        (Verdict.INCORRECT_VALUE, "Hidden inputs"),
        (Verdict.TIMING_REJECTED, "stream order"),
    ],
)
def test_advice_says_where_to_look(verdict: Verdict, word: str) -> None:
    assert word in for_failure(verdict, "what happened", "")


def test_a_pass_tells_time_interval_speedup_and_distance_to_the_floor() -> None:
    text = for_pass(timing(1.0), FLOOR, suspicious=False)
    assert "1 ms per call (0.9 to 1.1), reference 2 ms: 2.00 times as fast" in text
    assert "less than 0.5 ms (memory bound): 50 % of that limit is reached" in text
    assert "review" not in text
    assert "Python loop" not in text


def test_a_pass_beyond_the_floor_is_not_more_than_all_of_it() -> None:
    text = for_pass(timing(0.25), FLOOR, suspicious=True)
    assert "100 % of that limit" in text
    assert "kept for review" in text


def test_over_sizes_it_says_what_is_paid_for() -> None:
    assert ": 25 % of that limit" in for_pass(timing(1.0), FLOOR, suspicious=False, reached=0.25)


def test_a_suspicious_speedup_below_the_floor_promises_no_review_of_it() -> None:
    assert "faster than the limit" not in for_pass(timing(1.0), FLOOR, suspicious=True)


def test_the_mode_of_timing_is_named() -> None:
    assert "Python loop" in for_pass(timing(1.0, "eager"), FLOOR, suspicious=False)
    interpreted = for_pass(timing(1.0, "interpreted"), FLOOR, suspicious=False)
    assert "interpreter" in interpreted
    assert "ms" not in interpreted


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('File "/usr/lib/python3/site-packages/torch/x.py", line 3', 'File "x.py", line 3'),
        ("/a/b/c.cu(12): error", "c.cu(12): error"),
        ("in (/tmp/slot-3/sub.py:4)", "in (sub.py:4)"),
        ("=/home/a.b/c+d/e@f/g", "=g"),
        ("half 1/2, m/s, a / b, //", "half 1/2, m/s, a / b, //"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("bell\x07 escape\x1b[31m null\x00 lone\ud800", "bell escape[31m null lone"),
        ("naïve → 漢", "naïve → 漢"),
    ],
)
def test_directories_and_control_characters_are_taken_out(text: str, clean: str) -> None:
    assert bounded(text) == clean


def test_a_long_text_keeps_both_ends() -> None:
    text = bounded("begin " + "x" * 50_000 + " end")
    assert len(text) < MAX_FEEDBACK_CHARS + 100
    assert text.startswith("begin x")
    assert text.endswith("x end")
    assert f"[... {50_010 - MAX_FEEDBACK_CHARS} characters left out ...]" in text


def test_a_text_of_just_the_limit_is_whole() -> None:
    assert bounded("x" * MAX_FEEDBACK_CHARS) == "x" * MAX_FEEDBACK_CHARS


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.binary(max_size=300), st.sampled_from([v for v in Verdict if v not in UNSCORED]))
def test_any_text_becomes_bounded_text_that_can_be_sent(text: str, log: bytes, verdict: Verdict) -> None:
    feedback = for_failure(verdict, text * 50, tail_of(log))
    assert len(feedback) < MAX_FEEDBACK_CHARS + 100
    feedback.encode("utf-8")
    assert all(c.isprintable() or c in "\n\t" for c in feedback)


def test_the_directory_pattern_takes_no_quadratic_time() -> None:
    import time

    start = time.monotonic()
    for hostile in ("/" * 100_000, "/a" * 50_000, "@/" * 50_000, "/" + "a" * 100_000, "/.-" * 30_000):
        bounded(hostile)
    assert time.monotonic() - start < 5.0


def test_the_tail_of_a_log_is_text_whatever_its_bytes() -> None:
    assert tail_of(b"\xff\xfeend") == "\ufffd\ufffdend"
    assert tail_of(b"x" * 10_000 + b"end") == "x" * (MAX_LOG_CHARS - 3) + "end"
    assert tail_of(b"") == ""
