"""One repetition: what the trust rests on.

Stop the candidate, poison the outputs, write inputs nobody has seen, see that the device is idle, start the clock, let
it continue; when it says "done" stop the clock and the candidate, see that the device is idle, and only then look at
the outputs, twice, to see that they no longer change. Trusted.
"""

import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernel_env.terms import Stage, Verdict

from ..protocol import Called, Region, Reply
from ..verdicts import NOT_ITS_CHANNEL
from .compare import compare
from .device import Device
from .distributions import Draw
from .exchange import Exchange
from .layouts import calls_share_memory, check_called
from .peer import Peer, Stop
from .reference import Reference, random_seed
from .witness import Witness

RUNS_TOGETHER = 3
"""All repetitions together may take so many times what one may."""

PREPARATIONS = 3
"""Attempts to write the inputs of a repetition while the candidate stays stopped."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Time limits in seconds."""

    compile_s: float
    run_s: float


class Repeater:
    """Runs prepared calls of one candidate and verifies what they wrote."""

    def __init__(
        self, device: Device, reference: Reference, peer: Peer, exchange: Exchange, witness: Witness, budget: Budget
    ) -> None:
        """Nothing is prepared yet."""
        self._device, self._reference, self._peer, self._exchange = device, reference, peer, exchange
        self._witness, self._budget = witness, budget
        self.mode = "eager"
        self.calls: list[Called] = []
        """Outputs known to lie in fixed places: of every captured call, or of the last run of a loop."""

        self.max_abs_err = 0.0
        self._ran_s = 0.0

    def run(self, plan: int, chosen: list[int], draws: dict[int, Draw]) -> float:
        """One repetition; wall seconds between "go" and "done".

        Raises:
            Stop: Anything was wrong.
        """
        peer, exchange = self._peer, self._exchange
        draws = self._fill_unseen(draws)
        others = [c for c in self.calls if c.call not in draws] if self.mode == "graph" else []
        untouched = exchange.fingerprint(others)
        spots = exchange.choose_spots()
        self._device.synchronize()
        self._require_idle("before a call began")
        if self._witness.has_run():
            raise Stop(Verdict.TIMING_REJECTED, peer.stage, WOKE_UP_TEXT)
        token = secrets.randbits(64)
        start = time.perf_counter_ns()
        peer.go(plan, token)
        answer = peer.receive(Reply.DONE, self._left_s()).token
        wall_s = (time.perf_counter_ns() - start) * 1e-9
        self._ran_s += wall_s
        # Before anything else: stopping takes a while, and a while is what work that goes on would need.
        at_done = exchange.read(spots)
        peer.freeze()
        if answer != token:
            raise Stop(Verdict.RUNTIME_ERROR, peer.stage, NOT_ITS_CHANNEL)
        self._require_idle('after "done"')
        if not exchange.still_holds(spots, at_done):
            raise Stop(Verdict.TIMING_REJECTED, peer.stage, LATE_TEXT)
        self._verify(chosen, draws, others, untouched)
        peer.resume()
        return wall_s

    def _left_s(self) -> float:
        """Seconds the next repetition may take: no more than one may, and no more than is left for all of them.

        Raises:
            Stop: None is left.
        """
        left_s = RUNS_TOGETHER * self._budget.run_s - self._ran_s
        if left_s <= 0:
            text = f"the calls took more than {RUNS_TOGETHER * self._budget.run_s:.0f} s together"
            raise Stop(Verdict.TIMEOUT, self._peer.stage, text)
        return min(self._budget.run_s, left_s)

    def _fill_unseen(self, draws: dict[int, Draw]) -> dict[int, Draw]:
        """Stop the candidate, poison the outputs and write inputs; returns what was drawn at last."""
        for _ in range(PREPARATIONS):
            self._peer.freeze()
            self._witness.mark()
            self._exchange.poison(self.calls)
            self._exchange.fill(draws)
            if not self._witness.has_run():
                break
            # Once may be a hiccup of the host; what was written may have been seen, so it is not used.
            draws = {index: replace(draw, seed=random_seed()) for index, draw in draws.items()}
        return draws

    def _require_idle(self, when: str) -> None:
        """Probe, and again: one slow probe may be a hiccup of the host."""
        if not any(self._device.is_idle() for _ in range(3)):
            raise Stop(Verdict.TIMING_REJECTED, self._peer.stage, f"work of the submission was running {when}")

    def _verify(
        self, chosen: list[int], draws: dict[int, Draw], others: list[Called], untouched: Sequence[int]
    ) -> None:
        exchange, stage = self._exchange, self._peer.stage
        if self.mode == "graph":
            calls = [c for c in self.calls if c.call in draws]
            print_one = exchange.fingerprint(calls)
        else:
            print_one = exchange.fingerprint(None)
            self._peer.resume()
            calls = self.check_layouts(self._peer.describe(), chosen)
            self._peer.freeze()
            if exchange.fingerprint(None) != print_one:
                raise Stop(Verdict.TIMING_REJECTED, stage, LATE_TEXT)
            self.calls = calls
        self._witness.mark()
        for called in calls:
            self._verify_call(called, draws[called.call])
        # A process that woke up could have written what was then compared, and even taken it back.
        is_changed = exchange.fingerprint(calls if self.mode == "graph" else None) != print_one
        if is_changed or self._witness.has_run():
            raise Stop(Verdict.TIMING_REJECTED, stage, LATE_TEXT)
        if exchange.fingerprint(others) != list(untouched):
            text = "a call changed the output of another call; every call must stand alone"
            raise Stop(Verdict.TIMING_REJECTED, stage, text)

    def _verify_call(self, called: Called, draw: Draw) -> None:
        stage = self._peer.stage
        fresh = self._exchange.private_inputs(called.call, draw)
        if not self._exchange.inputs_intact(called.call, fresh):
            raise Stop(Verdict.INPUT_MODIFIED, stage, INPUT_MODIFIED_TEXT)
        outputs = self._exchange.outputs_of(called)
        if outputs is None:
            raise Stop(Verdict.INCORRECT_ALIAS, stage, "an output does not lie in memory torch allocated for this call")
        for number, (output, expected) in enumerate(zip(outputs, self._reference.expected(fresh), strict=True)):
            result = compare(output, expected, self._reference.tolerance)
            self.max_abs_err = max(self.max_abs_err, result.max_abs_err)
            if not result.is_right:
                raise self._wrong(number, len(outputs), result.mismatched, result.first_bad, result.max_abs_err)

    def _wrong(self, number: int, count: int, mismatched: int, first: tuple[int, ...] | None, error: float) -> Stop:
        where = f"output {number}: " if count > 1 else ""
        share = f"{mismatched} elements differ from the reference by more than the tolerance"
        at = f"; the first has index {list(first)}" if first is not None else ""
        text = f"{where}{share}{at}; largest absolute error {error:.3g}."
        finite = error if math.isfinite(error) else None
        if self._peer.stage is Stage.TIMING:
            text += LATER_CALL_TEXT
            return Stop(Verdict.NONDETERMINISTIC, Stage.TIMING, text, finite)
        if self._reference.slots:
            text += PARAMETERS_TEXT
        return Stop(Verdict.INCORRECT_VALUE, self._peer.stage, text, finite)

    def check_layouts(self, calls: list[Called], chosen: Sequence[int]) -> list[Called]:
        """Outputs as described, if they are those of the chosen calls and may be what they are.

        Raises:
            Stop: They may not.
        """
        stage = self._peer.stage
        if sorted(c.call for c in calls) != sorted(chosen):
            raise Stop(Verdict.RUNTIME_ERROR, stage, NOT_ITS_CHANNEL)
        for called in calls:
            refused = check_called(called, self._reference.output_spec, must_be_routed=True)
            if refused is not None:
                raise Stop(refused.verdict, stage, refused.text)
            if any(t.region == Region.FOREIGN for t in called.tensors):
                raise AssertionError("a routed output cannot be foreign")
        if calls_share_memory(calls):
            raise Stop(Verdict.INCORRECT_ALIAS, stage, SHARED_OUTPUT_TEXT)
        return calls


INPUT_MODIFIED_TEXT = "the inputs were written to; leave them as they are and write to a new tensor"
LATER_CALL_TEXT = (
    " Earlier calls were right: a later call on fresh inputs was not. Every call must compute its own output"
    " from its own inputs, for any values the prompt allows."
)
PARAMETERS_TEXT = (
    " Parameters are loaded after construction: tensors derived from them in __init__ hold old values;"
    " derive them in forward."
)
LATE_TEXT = 'outputs were still written after "done"'
WOKE_UP_TEXT = "a process of the submission ran while it was stopped, before a call began"
SHARED_OUTPUT_TEXT = (
    "outputs of different calls share memory; allocate a new output in every call "
    "(torch.empty or similar), do not return a buffer kept between calls"
)
