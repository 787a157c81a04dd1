"""What so many evaluations may hold at a time: never more, fair between sessions, a queue with an end."""

import threading
import time
from contextlib import ExitStack

import pytest

from server.errors import Busy
from server.evaluator import lease as lease_module
from server.evaluator.lease import Lease


@pytest.fixture
def lease(monkeypatch: pytest.MonkeyPatch) -> Lease:
    monkeypatch.setattr(lease_module, "POLL_S", 0.01)
    return Lease()


class Queue:
    """Sessions that wait in threads; notes who was served when."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.served: list[str] = []
        self.threads: list[threading.Thread] = []

    def join(self, session_id: str) -> None:
        """Wait in a thread; returns when the wait has begun."""
        before = self.lease.load
        self.threads.append(threading.Thread(target=self._hold, args=(session_id,)))
        self.threads[-1].start()
        end = time.monotonic() + 5
        while self.lease.load == before and time.monotonic() < end:
            time.sleep(0.001)

    def _hold(self, session_id: str) -> None:
        with self.lease.hold(session_id, time.monotonic() + 20):
            self.served.append(session_id)

    def finish(self) -> list[str]:
        for thread in self.threads:
            thread.join(20)
        return self.served


def test_a_free_device_is_held_at_once(lease: Lease) -> None:
    with lease.hold("a", end=0.0):  # a deadline that has passed does not matter when nobody waits
        assert lease.load == 1
    assert lease.load == 0


def test_nobody_else_holds_it_meanwhile(lease: Lease) -> None:
    inside, most = 0, 0
    lock = threading.Lock()

    def work(session_id: str) -> None:
        nonlocal inside, most
        for _ in range(20):
            with lease.hold(session_id):
                with lock:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0)
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (inside, most) == (0, 1)


def test_the_session_served_longest_ago_comes_first(lease: Lease) -> None:
    for session_id in ("a", "b", "c"):
        with lease.hold(session_id):
            pass
    queue = Queue(lease)
    with lease.hold("x"):
        for session_id in ("c", "b", "a"):
            queue.join(session_id)
    assert queue.finish() == ["a", "b", "c"]


def test_a_new_session_comes_before_one_that_was_served(lease: Lease) -> None:
    queue = Queue(lease)
    with lease.hold("greedy"):
        for session_id in ("greedy", "greedy", "new"):
            queue.join(session_id)
    assert queue.finish() == ["new", "greedy", "greedy"]


def test_one_session_with_many_requests_does_not_starve_another(lease: Lease) -> None:
    queue = Queue(lease)
    with lease.hold("x"):
        for session_id in ("a", "a", "a", "b", "b"):
            queue.join(session_id)
        assert lease.load == 6
    assert queue.finish() == ["a", "b", "a", "b", "a"]


def test_waiting_ends_at_its_time_and_leaves_the_queue(lease: Lease) -> None:
    with lease.hold("a"):
        start = time.monotonic()
        with pytest.raises(Busy, match="evaluations wait"), lease.hold("b", end=start + 0.03):
            raise AssertionError("held twice")
        assert 0.03 <= time.monotonic() - start < 5
        assert lease.load == 1
    with lease.hold("b", end=0.0):
        pass


def test_a_waiter_nobody_waits_for_gives_up(lease: Lease) -> None:
    answers = iter([False, False, True])
    with lease.hold("a"):
        with (
            pytest.raises(Busy, match="session is gone"),
            lease.hold("b", None, lambda: next(answers)),
        ):
            raise AssertionError("held twice")
        assert lease.load == 1


def test_a_waiter_that_gave_up_was_not_served(lease: Lease) -> None:
    """Its session keeps its place before others."""
    queue = Queue(lease)
    with lease.hold("a"), pytest.raises(Busy), lease.hold("b", end=0.0):
        raise AssertionError("held twice")
    with lease.hold("x"):
        queue.join("a")
        queue.join("b")
    assert queue.finish() == ["b", "a"]


def test_an_exception_gives_the_device_back(lease: Lease) -> None:
    with pytest.raises(KeyError), lease.hold("a"):
        raise KeyError("boom")
    with lease.hold("b", end=0.0):
        assert lease.load == 1


def test_memory_of_sessions_is_bounded_and_keeps_the_recent_ones(lease: Lease) -> None:
    for number in range(5000):
        with lease.hold(str(number)):
            pass
    assert len(lease._last_served) <= 4096
    assert "4999" in lease._last_served
    assert "0" not in lease._last_served


def test_several_devices_are_held_independently(lease: Lease) -> None:
    with ExitStack() as stack:
        stack.enter_context(lease.hold("a"))
        stack.enter_context(Lease().hold("a", end=0.0))
        assert lease.load == 1


def test_as_many_hold_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "POLL_S", 0.01)
    lease = Lease(2)
    with lease.hold("a"), lease.hold("b"):
        assert (lease.held, lease.waiting) == (2, 0)
        with pytest.raises(Busy), lease.hold("c", end=0.0):
            raise AssertionError("held thrice")
    with lease.hold("c", end=0.0):
        assert lease.held == 1


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "POLL_S", 0.01)
    clock = [100.0]
    monkeypatch.setattr("server.evaluator.lease.time.monotonic", lambda: clock[0])
    lease = Lease(capacity=2, max_waiting=1)
    with lease.hold("first"):
        clock[0] += 8.0  # the mean from here on
    queue = Queue(lease)
    with lease.hold("a"), lease.hold("b"):
        queue.join("c")
        with pytest.raises(Busy, match=r"1 evaluations wait, no more may wait; try again in about 8 s") as refused:
            lease.hold("d").__enter__()
        assert refused.value.retry_after_s == 8.0  # two before it, two at a time
    assert queue.finish() == ["c"]
    with lease.hold("d"):
        assert lease.load == 1


def test_nobody_waits_where_nobody_may() -> None:
    strict = Lease(max_waiting=0)
    with strict.hold("a"), pytest.raises(Busy, match="no more may wait") as refused:
        strict.hold("b").__enter__()
    assert refused.value.retry_after_s is None  # nothing has ended yet: nothing is known
    with strict.hold("b"):
        assert strict.held == 1
