"""What only so many evaluations may hold at a time: a device, or a place to run. Fair between sessions, bounded.

No torch, no processes.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import Busy

POLL_S = 0.2
"""How often a waiter looks whether it was cancelled."""

MEMORY = 0.1
"""Weight of the newest evaluation in the mean of how long one holds."""


class Lease:
    """Something to hold, given to the session that was served longest ago.

    Args:
        capacity: How many may hold it at a time.
        max_waiting: How many may wait for it; None for any number.
    """

    def __init__(self, capacity: int = 1, max_waiting: int | None = None) -> None:
        self._capacity, self._max_waiting = capacity, max_waiting
        self._condition = threading.Condition()
        self._held = 0
        self._waiting: dict[int, str] = {}
        self._next_ticket = 0
        self._last_served: dict[str, int] = {}
        self._served = 0
        self._mean_s: float | None = None

    @property
    def waiting(self) -> int:
        """How many wait, those who hold it left out."""
        with self._condition:
            return len(self._waiting)

    @property
    def held(self) -> int:
        """How many hold it."""
        with self._condition:
            return self._held

    @property
    def load(self) -> int:
        """How many wait or hold."""
        with self._condition:
            return len(self._waiting) + self._held

    @contextmanager
    def hold(
        self, session_id: str, end: float | None = None, is_cancelled: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        """Wait for it and hold it.

        Args:
            end: Give up at this monotonic time.
            is_cancelled: Asked while waiting; may raise, which ends the wait.
        Raises:
            Busy: `end` passed, too many wait already, or the caller is no longer interested.
        """
        self._wait(session_id, end, is_cancelled)
        start = time.monotonic()
        try:
            yield
        finally:
            with self._condition:
                self._held -= 1
                held_s = time.monotonic() - start
                before_s = held_s if self._mean_s is None else self._mean_s
                self._mean_s = before_s + MEMORY * (held_s - before_s)
                self._condition.notify_all()

    def _wait(self, session_id: str, end: float | None, is_cancelled: Callable[[], bool] | None) -> None:
        with self._condition:
            if self._max_waiting is not None and self._is_full() and len(self._waiting) >= self._max_waiting:
                raise self._busy("no more may wait")
            ticket = self._next_ticket
            self._next_ticket += 1
            self._waiting[ticket] = session_id
            try:
                while self._is_full() or self._first() != ticket:
                    self._condition.wait(POLL_S if end is None else min(POLL_S, max(0.0, end - time.monotonic())))
                    if is_cancelled is not None and is_cancelled():
                        raise Busy("the session is gone")
                    if end is not None and time.monotonic() > end:
                        raise self._busy("it did not begin in time")
                self._held += 1
                self._served += 1
                self._last_served[session_id] = self._served
                if len(self._last_served) > 4096:  # sessions come and go for days
                    self._last_served = dict(sorted(self._last_served.items(), key=lambda item: item[1])[-1024:])
            finally:
                del self._waiting[ticket]
                self._condition.notify_all()

    def _is_full(self) -> bool:
        return self._held >= self._capacity

    def _busy(self, why: str) -> Busy:
        """Says how many wait, and when whoever asks now would have its turn."""
        count = len(self._waiting)
        after_s = None if self._mean_s is None else self._mean_s * (count + 1) / self._capacity
        advice = "" if after_s is None else f"; try again in about {max(after_s, 1.0):.0f} s"
        return Busy(f"{count} evaluations wait, {why}{advice}", after_s)

    def _first(self) -> int:
        """Ticket to serve next: of the session served longest ago, its oldest."""
        return min(self._waiting, key=lambda ticket: (self._last_served.get(self._waiting[ticket], -1), ticket))
