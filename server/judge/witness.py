"""Did a process run that was to be stopped? Trusted; reads the kernel's CPU clocks, which nobody can set.

A stopped process can be woken by more than the judge: a timer or a watched file can send SIGCONT. One that ran between
the stop and the start of the clock may have seen its inputs early. It used CPU time.
"""

import time
from collections.abc import Iterable

from ..sandbox.process_table import ProcessTable, Target

SLACK_S = 2e-4
"""A task that has just been marked as stopped may still be on its way off the core. Too short to be worth a wake-up."""

SETTLE_S = 3e-5
SETTLE_READINGS = 60

_CPUCLOCK_SCHED = 2
"""Which clock of a process: what the scheduler counted, in nanoseconds."""


class Witness:
    """CPU time of every process of one candidate."""

    def __init__(self, target: Target) -> None:
        """Watch `target`."""
        self._target = target
        self._table = ProcessTable()
        self._used_s: dict[int, float] = {}

    def mark(self) -> None:
        """Remember how much was used up to now, all processes being stopped.

        A task shows as stopped a moment before it leaves its core, and whatever takes the core away in that moment, the
        host of a virtual machine for instance, is charged to it when it does leave. So the clocks are read until they
        stand still.
        """
        used_s = self._now()
        for _ in range(SETTLE_READINGS):
            end = time.perf_counter() + SETTLE_S
            while time.perf_counter() < end:
                pass  # giving the core away would cost milliseconds on a busy host, in every repetition
            again_s = _clocks(used_s)
            if again_s == used_s:
                break
            used_s = again_s
        self._used_s = used_s

    def has_run(self) -> bool:
        """Whether a process used CPU time since `mark`, or appeared."""
        now = self._now()
        ran_s = sum(used_s - self._used_s.get(pid, -1.0) for pid, used_s in now.items())
        return ran_s > SLACK_S

    def _now(self) -> dict[int, float]:
        return _clocks(self._table.pids(self._target))


def _clocks(pids: Iterable[int]) -> dict[int, float]:
    used_s = {}
    for pid in pids:
        try:
            used_s[pid] = time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)
        except OSError:  # it has ended, and can do nothing any more
            continue
    return used_s
