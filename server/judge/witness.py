"""Did a process run that was to be stopped? Trusted; reads the kernel's CPU clocks, which nobody can set.

A stopped process can be woken by more than the judge: a timer or a watched file can send SIGCONT. One that ran between
the stop and the start of the clock may have seen its inputs early. It used CPU time.
"""

import time

from ..sandbox.process_table import ProcessTable, Target

SLACK_S = 2e-4
"""A task that has just been marked as stopped may still be on its way off the core. Too short to be worth a wake-up."""

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
        """Remember how much was used up to now, all processes being stopped."""
        self._used_s = self._now()

    def has_run(self) -> bool:
        """Whether a process used CPU time since `mark`, or appeared."""
        now = self._now()
        ran_s = sum(used_s - self._used_s.get(pid, -1.0) for pid, used_s in now.items())
        return ran_s > SLACK_S

    def _now(self) -> dict[int, float]:
        used = {}
        for pid in self._table.pids(self._target):
            try:
                used[pid] = time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)
            except OSError:  # it has ended, and can do nothing any more
                continue
        return used
