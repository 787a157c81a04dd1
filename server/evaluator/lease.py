"""One device, one evaluation at a time, fairly between sessions. No torch, no processes."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import Busy

POLL_S = 0.2
"""How often a waiter looks whether it was cancelled."""


class Lease:
    """Mutual exclusion that serves the session that was served longest ago."""

    def __init__(self) -> None:
        """Free at first."""
        self._condition = threading.Condition()
        self._is_taken = False
        self._waiting: dict[int, str] = {}
        self._next_ticket = 0
        self._last_served: dict[str, int] = {}
        self._served = 0

    @property
    def waiting(self) -> int:
        """How many wait or hold."""
        with self._condition:
            return len(self._waiting) + self._is_taken

    @contextmanager
    def hold(
        self, session_id: str, end: float | None = None, is_cancelled: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        """Wait for the device and hold it.

        Args:
            end: Give up at this monotonic time.
        Raises:
            Busy: `end` passed, or the caller is no longer interested.
        """
        with self._condition:
            ticket = self._next_ticket
            self._next_ticket += 1
            self._waiting[ticket] = session_id
            try:
                while self._is_taken or self._first() != ticket:
                    self._condition.wait(POLL_S)
                    if is_cancelled is not None and is_cancelled():
                        raise Busy("the session is gone")
                    if end is not None and time.monotonic() > end:
                        raise Busy(f"the device was busy; {len(self._waiting)} evaluations wait for it")
                self._is_taken = True
                self._served += 1
                self._last_served[session_id] = self._served
                if len(self._last_served) > 4096:  # sessions come and go for days
                    self._last_served = dict(sorted(self._last_served.items(), key=lambda item: item[1])[-1024:])
            finally:
                del self._waiting[ticket]
                self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._is_taken = False
                self._condition.notify_all()

    def _first(self) -> int:
        """Ticket to serve next: of the session served longest ago, its oldest."""
        return min(self._waiting, key=lambda ticket: (self._last_served.get(self._waiting[ticket], -1), ticket))
