"""One device with its judge: requests under the lease, a judge that died started anew, and whose fault that was.

Trusted side; no torch. A fault is ours only if a canary, a trusted module on the same device, fails as well.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import EvaluatorError
from .child_programs import Judge
from .interface import DeviceStatus
from .lease import Lease

STRIKES = 3
"""Failed restarts or canaries in a row after which the device is not used until one succeeds."""

logger = logging.getLogger(__name__)


class Station:
    """A device that evaluates."""

    def __init__(self, gpu_id: str, start_judge: Callable[[], Judge]) -> None:
        """Start the judge; `wait_ready` waits for it."""
        self.gpu_id = gpu_id
        self.lease = Lease()
        self.name = gpu_id
        self.ceilings: Mapping[str, Any] = {}
        self.baselines: set[str] = set()
        """Keys of the tasks whose reference this judge has timed."""

        self.strikes = 0
        self.assigned = 0
        """Evaluations that are to be judged here and have not ended; the evaluator counts."""

        self.last_chosen = 0
        self._start_judge = start_judge
        self._is_closed = threading.Event()
        self.judge = start_judge()

    def wait_ready(self) -> None:
        """Wait for the calibration.

        Raises:
            EvaluatorError: The device cannot be used; the text says why.
        """
        hello = self.judge.wait_ready()
        self.name = str(hello["name"])
        self.ceilings = hello["ceilings"]

    @property
    def is_healthy(self) -> bool:
        """Whether evaluations are sent here."""
        return self.strikes < STRIKES

    def status(self) -> DeviceStatus:
        """What it is doing now."""
        return DeviceStatus(self.gpu_id, self.is_healthy, self.lease.held > 0, self.assigned, self.strikes)

    def restart(self) -> None:
        """Replace a judge that ended. Hold the lease.

        Raises:
            EvaluatorError: No new one could be started; that is a strike.
        """
        self.judge.close()
        self.baselines.clear()
        if self._is_closed.is_set():
            raise EvaluatorError("the evaluator is closed")
        logger.error("judge_restart gpu_id=%s", self.gpu_id)
        try:
            self.judge = self._start_judge()
            if self._is_closed.is_set():  # `close` may have ended the old one
                self.judge.close()
            self.wait_ready()
        except EvaluatorError:
            self.strike("judge")
            raise

    def absolve(self) -> None:
        """Forget faults: the device has just judged something."""
        self.strikes = 0

    def strike(self, why: str) -> None:
        """Count a fault of the device's own."""
        self.strikes += 1
        logger.error("device_strike gpu_id=%s strikes=%d why=%s", self.gpu_id, self.strikes, why)

    def close(self) -> None:
        """End the judge. Safe to call twice."""
        self._is_closed.set()
        self.judge.close()
