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

import torch

from kernel_env.terms import Stage, Verdict

from ..protocol import Called, Region, Reply
from ..verdicts import NOT_ITS_CHANNEL
from .compare import compare
from .device import Device
from .distributions import Draw
from .exchange import Exchange
from .findings import Findings
from .layouts import calls_share_memory, check_called
from .neighbours import Neighbours
from .peer import Peer, Stop
from .reference import Reference, random_seed
from .watch import NoWatch, Watch
from .witness import Witness

RUNS_TOGETHER = 3
"""All repetitions together may take so many times what one may."""

PREPARATIONS = 4
"""Attempts to write the inputs of a repetition while nobody else runs."""

VERIFICATIONS = 4
"""Comparisons of the outputs of a repetition, until nobody ran meanwhile."""

EVICT_AFTER = 2
"""Attempts after which the neighbours are taken to be what keeps the device busy. What they had queued is over then."""

LOST_LIMIT_S = 1e-4
"""Use of the device by others, before a repetition, that may be a hiccup: a hundredth of a repetition."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Time limits in seconds."""

    compile_s: float
    run_s: float


@dataclass(frozen=True, slots=True)
class _Ready:
    """A repetition that may begin."""

    draws: dict[int, Draw]
    others: list[Called]
    """Calls that are not asked for, whose outputs must stay what they are."""

    untouched: Sequence[int]
    """Fingerprints of those."""

    spots: torch.Tensor
    start_ns: int
    """On the clock of `time.perf_counter_ns`."""


class Repeater:
    """Runs prepared calls of one candidate and verifies what they wrote."""

    def __init__(
        self,
        device: Device,
        reference: Reference,
        peer: Peer,
        exchange: Exchange,
        witness: Witness,
        neighbours: Neighbours,
        budget: Budget,
    ) -> None:
        """Nothing is prepared yet."""
        self._device, self._reference, self._peer, self._exchange = device, reference, peer, exchange
        self._witness, self._neighbours, self._budget = witness, neighbours, budget
        self.mode = "eager"
        self.calls: list[Called] = []
        """Outputs known to lie in fixed places: of every captured call, or of the last run of a loop."""

        self.max_abs_err = 0.0
        self._ran_s = 0.0

    def run(self, plan: int, chosen: list[int], draws: dict[int, Draw], *, is_warm: bool = True) -> float:
        """One repetition; wall seconds between the end of its preparation and "done".

        Args:
            is_warm: Whether every kernel of ours that prepares it has run before. Loading one while another of ours is
                resident, to watch the device, waits for that one.
        Raises:
            Stop: Anything was wrong.
        """
        peer, exchange = self._peer, self._exchange
        token = secrets.randbits(64)
        ready = self._prepare(draws, is_watched=is_warm and self._is_alone)
        spots, draws, start = ready.spots, ready.draws, ready.start_ns
        peer.go(plan, token)
        answer = peer.receive(Reply.DONE, self._left_s()).token
        wall_ns = time.perf_counter_ns() - start
        # Before anything else: stopping takes a while, and a while is what work that goes on would need.
        at_done = exchange.read(spots)
        if self._device.is_asynchronous:
            # Work that was not waited for is done before our look at the outputs, and within the clock.
            self._device.synchronize()
            wall_ns = time.perf_counter_ns() - start
        wall_s = wall_ns * 1e-9
        self._ran_s += wall_s
        peer.freeze()
        if answer != token:
            raise Stop(Verdict.RUNTIME_ERROR, peer.stage, NOT_ITS_CHANNEL)
        if is_warm:
            self._require_idle()
        if not exchange.still_holds(spots, at_done):
            raise Stop(Verdict.TIMING_REJECTED, peer.stage, LATE_TEXT)
        self._verify(chosen, draws, ready.others, ready.untouched)
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

    def _prepare(self, draws: dict[int, Draw], *, is_watched: bool) -> _Ready:
        """Stop the candidate, poison the outputs and write inputs, until nobody ran while that was done.

        What was written while somebody ran may have been seen, so it is not used.

        Raises:
            Stop: Somebody ran every time.
        """
        who = ""
        for attempt in range(PREPARATIONS):
            self._peer.freeze()
            watch: Watch = self._device.watch() if is_watched else NoWatch()
            try:
                self._witness.mark()
                self._exchange.poison(self.calls)
                others = [c for c in self.calls if c.call not in draws] if self.mode == "graph" else []
                untouched = self._exchange.fingerprint(others)
                spots = self._exchange.choose_spots()
                poisoned = self._exchange.read(spots)
                self._exchange.fill(draws)
                self._device.synchronize()
                is_written = not self._exchange.still_holds(spots, poisoned)
                has_run = self._witness.has_run()
            finally:
                # The clock starts first: work that waits for the watch to end is not done before the clock.
                start_ns = time.perf_counter_ns()
                lost_s = watch.end()
            if not (is_written or has_run or lost_s > LOST_LIMIT_S):
                return _Ready(draws, others, untouched, spots, start_ns)
            who = WOKE_UP_TEXT if has_run else EARLY_TEXT
            if attempt + 1 == EVICT_AFTER and lost_s > LOST_LIMIT_S:
                self._neighbours.evict()
            draws = {index: replace(draw, seed=random_seed()) for index, draw in draws.items()}
        raise Stop(Verdict.TIMING_REJECTED, self._peer.stage, who)

    @property
    def _is_alone(self) -> bool:
        """Whether the neighbours are stopped, so that whoever uses the device is the candidate."""
        return self._peer.stage is Stage.TIMING

    def _require_idle(self) -> None:
        """Probe, and again: one slow probe may be a hiccup of the host."""
        if self._is_alone and not any(self._device.is_idle() for _ in range(3)):
            raise Stop(Verdict.TIMING_REJECTED, self._peer.stage, STILL_BUSY_TEXT)

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
                raise Stop(Verdict.TIMING_REJECTED, stage, DESCRIBED_TEXT)
            self.calls = calls
        self._verify_undisturbed(calls, draws, print_one)
        if exchange.fingerprint(others) != list(untouched):
            text = "a call changed the output of another call; every call must stand alone"
            raise Stop(Verdict.TIMING_REJECTED, stage, text)

    def _verify_undisturbed(self, calls: Sequence[Called], draws: dict[int, Draw], print_one: Sequence[int]) -> None:
        """Compare until nobody ran meanwhile: who woke up could write what is compared, and take it back afterwards.

        Honest submissions and a reference were refused for one disturbed comparison, a few in a thousand evaluations on
        a virtual machine, for reasons of which not all may be known; an undisturbed one says all there is to say.

        Raises:
            Stop: Outputs are wrong, or changed, or somebody ran every time.
        """
        for _ in range(VERIFICATIONS):
            self._witness.mark()
            self._verify_calls(calls, draws)
            if list(self._exchange.fingerprint(calls if self.mode == "graph" else None)) != list(print_one):
                raise Stop(Verdict.TIMING_REJECTED, self._peer.stage, LATE_TEXT)
            if not self._witness.has_run():
                return
        raise Stop(Verdict.TIMING_REJECTED, self._peer.stage, WOKE_UP_LATE_TEXT)

    def _verify_calls(self, calls: Sequence[Called], draws: dict[int, Draw]) -> None:
        """Inputs and outputs of every call; what is wrong is looked at again, to say what it is."""
        reference = self._reference
        findings = Findings(
            self._device.torch_device, reference.tolerance, len(calls), len(reference.output_spec.shapes)
        )
        for place, called in enumerate(calls):
            fresh = self._exchange.private_inputs(called.call, draws[called.call])
            findings.inputs(place, *self._exchange.input_pairs(called.call, fresh))
            for number, (got, want) in enumerate(self._pairs(called, fresh)):
                findings.output(place, number, got, want)
        wrong = findings.wrong()
        self.max_abs_err = max(self.max_abs_err, findings.max_abs_err)
        for place in wrong:
            stop = self._why(calls[place], draws[calls[place].call])
            if stop is not None:
                raise stop

    def _pairs(self, called: Called, fresh: list[object]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Outputs of a call, and what they should be."""
        outputs = self._exchange.outputs_of(called)
        if outputs is None:
            text = "an output does not lie in memory torch allocated for this call"
            raise Stop(Verdict.INCORRECT_ALIAS, self._peer.stage, text)
        return list(zip(outputs, self._reference.expected(fresh), strict=True))

    def _why(self, called: Called, draw: Draw) -> Stop | None:
        """What is wrong with a call, inputs first; nothing, if only rounding in a kernel put it beyond the bound."""
        fresh = self._exchange.private_inputs(called.call, draw)
        if not self._exchange.inputs_intact(called.call, fresh):
            return Stop(Verdict.INPUT_MODIFIED, self._peer.stage, INPUT_MODIFIED_TEXT)
        pairs = self._pairs(called, fresh)
        for number, (got, want) in enumerate(pairs):
            result = compare(got, want, self._reference.tolerance)
            if not result.is_right:
                self.max_abs_err = max(self.max_abs_err, result.max_abs_err)
                return self._wrong(number, len(pairs), result.mismatched, result.first_bad, result.max_abs_err)
        return None

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
DESCRIBED_TEXT = "outputs changed while they were described"
WOKE_UP_LATE_TEXT = "a process of the submission ran while it was stopped, after its calls"
STILL_BUSY_TEXT = 'work of the submission was running after "done"'
WOKE_UP_TEXT = "a process of the submission ran while it was stopped, before a call began"
EARLY_TEXT = "work of the submission was running on the device before a call began"
SHARED_OUTPUT_TEXT = (
    "outputs of different calls share memory; allocate a new output in every call "
    "(torch.empty or similar), do not return a buffer kept between calls"
)
