"""One device, one evaluation at a time: exclusive, fair between sessions, and left in time."""

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
        before = self.lease.waiting
        self.threads.append(threading.Thread(target=self._hold, args=(session_id,)))
        self.threads[-1].start()
        end = time.monotonic() + 5
        while self.lease.waiting == before and time.monotonic() < end:
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
        assert lease.waiting == 1
    assert lease.waiting == 0


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
        assert lease.waiting == 6
    assert queue.finish() == ["a", "b", "a", "b", "a"]


def test_waiting_ends_at_its_time_and_leaves_the_queue(lease: Lease) -> None:
    with lease.hold("a"):
        start = time.monotonic()
        with pytest.raises(Busy, match="evaluations wait"), lease.hold("b", end=start + 0.03):
            raise AssertionError("held twice")
        assert 0.03 <= time.monotonic() - start < 5
        assert lease.waiting == 1
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
        assert lease.waiting == 1


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
        assert lease.waiting == 1


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
        assert lease.waiting == 1
