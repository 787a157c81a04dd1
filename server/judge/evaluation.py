"""One evaluation: first call, correctness on hidden inputs, timing over verified outputs.

Trusted. The order of a repetition is what the trust rests on: stop the candidate, poison the outputs, write inputs
nobody has seen, see that the device is idle, start the clock, let it continue; when it says "done" stop the clock and
the candidate, see that the device is idle, and only then look at the outputs, twice, to see that they no longer
change.
"""

import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from kernel_env.terms import Stage, Verdict

from ..protocol import Called, Failure, Plan, Region, Reply, encode_command
from ..verdicts import NOT_ITS_CHANNEL
from .compare import compare
from .device import PIECE_BYTES, Device
from .distributions import Draw, fresh_draw
from .exchange import Exchange
from .layouts import calls_share_memory, check_called
from .peer import CandidateGone, NotCapturable, Peer, Stop
from .reference import Reference, random_seed
from .timing import Estimate, Samples, estimate
from .witness import Witness

TRIALS = 6
"""Correctness trials; every distribution of the task comes up at least once."""

LEAST_WHOLE_REPETITIONS = 4
TIMING_BUDGET_S = 6.0
EMPTY_REPETITIONS = 5


@dataclass(frozen=True, slots=True)
class Schedule:
    """How much is timed on a kind of device."""

    target_s: float
    """Least length of a repetition: the handoff then moves t by about a percent."""

    most_calls: int
    whole_repetitions: int
    short_repetitions: int
    """Of one call, and of half of the calls."""

    cold_factor: float
    """Inputs and outputs of all calls exceed the last cache by this factor, so that no call finds its inputs cached."""

    slack_bytes: int
    """What the allocator may waste per call."""

    least_calls: int
    negligible_handoff: float
    """Share of a repetition below which the handoff is subtracted without a look at noisy slopes."""

    from_least: bool
    """Whether the shortest repetition counts, not the median: a CPU is shared with everything else on the host."""

    usual_handoff_s: float
    times_empty: bool
    """Whether a repetition of no call costs the whole handoff; on a GPU it lacks the context switch."""


SCHEDULES = {
    "cuda": Schedule(
        target_s=0.010,
        most_calls=512,
        whole_repetitions=8,
        short_repetitions=4,
        cold_factor=2.5,
        slack_bytes=44 << 20,  # torch takes device memory in segments of 2 and 20 MiB
        least_calls=2,
        negligible_handoff=0.0,
        from_least=False,
        usual_handoff_s=3e-4,
        times_empty=False,
    ),
    "cpu": Schedule(
        target_s=0.005,
        most_calls=16,  # random numbers cost 5 to 30 ns each here
        whole_repetitions=8,
        short_repetitions=4,
        cold_factor=0.0,  # the last cache may be larger than any number of sets
        slack_bytes=1 << 16,
        least_calls=4,
        negligible_handoff=0.05,
        from_least=True,
        usual_handoff_s=6e-5,
        times_empty=True,
    ),
}

SHORTEST_CALL_S = 5e-7
ENOUGH = 0.6
"""Share of the wanted length of a repetition that is good enough."""

SLOTS_PER_PACKET = 400

RUNS_TOGETHER = 3
"""All repetitions together may take so many times what one may."""

PREPARATIONS = 3
"""Attempts to write the inputs of a repetition while the candidate stays stopped."""


def most_shared_bytes(reference: Reference, plan: Schedule) -> int:
    """Most memory of the judge's that a candidate maps: for one call, for K calls, and again if K was too small."""
    per_call = 8 * (reference.output_bytes + reference.input_bytes) + 2 * plan.slack_bytes
    return reference.state_bytes + (1 + 2 * plan.most_calls) * (reference.set_bytes + PIECE_BYTES + per_call)


@dataclass(frozen=True, slots=True)
class Budget:
    """Time limits in seconds."""

    compile_s: float
    run_s: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What a correct evaluation yields."""

    mode: str
    estimate: Estimate
    calls: int
    repetitions: int
    max_abs_err: float


@dataclass(slots=True)
class Phases:
    """Seconds by phase."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block to phase `name`."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start


class Evaluation:
    """The part of an evaluation that needs the device."""

    def __init__(
        self,
        device: Device,
        reference: Reference,
        peer: Peer,
        budget: Budget,
        quiet: Callable[[bool], None],
        phases: Phases,
        witness: Witness,
    ) -> None:
        """Evaluate the candidate behind `peer`, already loaded.

        Args:
            quiet: Called with true before timing and with false after it, to stop everybody else on the device.
            witness: Of the candidate's processes.
        """
        self._device, self._reference, self._peer, self._budget = device, reference, peer, budget
        self._witness = witness
        self._quiet, self._phases = quiet, phases
        self._exchange = Exchange(device, reference)
        self._schedule = SCHEDULES[device.kind]
        self._calls: list[Called] = []
        self._mode = "eager"
        self._order: list[int] = []
        self._max_abs_err = 0.0
        self._ran_s = 0.0

    def close(self) -> None:
        """End the candidate, then give the memory back."""
        self._peer.end()
        self._exchange.close()

    def first_call(self) -> float:
        """Bind parameters, make the first calls in ordinary memory; returns seconds per call, roughly.

        Raises:
            Stop: With the verdict.
        """
        with self._phases.timed("bind"):
            self._reference.perturb(random_seed())
            fields = self._exchange.open_inputs(1, with_state=True)
            draw = self._draw(0)
            self._exchange.fill({0: draw})
            self._device.synchronize()
            self._bind(fields)
        with self._phases.timed("first_call"):
            called = self._call_once(self._budget.compile_s)
        refused = check_called(called, self._reference.output_spec, must_be_routed=False)
        if refused is not None:
            raise Stop(refused.verdict, Stage.CORRECTNESS, refused.text)
        self._allocated = called.allocated_bytes
        self._peer.stage = Stage.CORRECTNESS
        if not self._exchange.inputs_intact(0, self._exchange.private_inputs(0, draw)):
            raise Stop(Verdict.INPUT_MODIFIED, Stage.CORRECTNESS, INPUT_MODIFIED_TEXT)
        return self._rough_time()

    def _rough_time(self) -> float:
        best = math.inf
        with self._phases.timed("estimate"):
            for _ in range(3):
                start = time.perf_counter()
                self._call_once(self._budget.run_s)
                best = min(best, time.perf_counter() - start)
                if best > 1.0:
                    break
        return best

    def _bind(self, fields: dict[str, object]) -> None:
        slots = [
            (s.name, s.is_parameter, list(s.shape), str(s.dtype).removeprefix("torch."), s.offset)
            for s in self._reference.slots
        ]
        for start in range(0, len(slots), SLOTS_PER_PACKET):
            self._peer.send(encode_command("parameters", slots=slots[start : start + SLOTS_PER_PACKET]))
        assert self._exchange.inputs is not None
        fds = [self._exchange.inputs.fd] if self._exchange.inputs.fd >= 0 else []
        bound = self._peer.command("bind", Reply.BOUND, self._budget.run_s, fds, **fields)
        names = [self._reference.slots[i].name for i in bound.missing if i < len(slots)]
        if names:
            shapes = {s.name: list(s.shape) for s in self._reference.slots}
            wanted = ", ".join(f"{name} {shapes[name]}" for name in names[:8])
            raise Stop(
                Verdict.INCORRECT_PARAMETERS,
                Stage.COMPILE,
                f"ModelNew has no parameter for: {wanted}. Create them with the names and shapes of the reference.",
            )

    def _call_once(self, timeout_s: float) -> Called:
        called = self._peer.command("call", Reply.CALLED, timeout_s, set=0).called
        assert called is not None
        return called

    def prepare(self, rough_s: float, mode: str, most_calls: int | None = None) -> None:
        """Lay out K input sets and the block for outputs, and have the calls prepared.

        Args:
            mode: `graph` or `eager`.
            most_calls: Upper bound on K, for a candidate whose time means nothing.
        Raises:
            NotCapturable: `graph` is not possible; evaluate a fresh candidate with `eager`.
            Stop: With the verdict.
        """
        self._lay_out(self._choose_calls(rough_s, most_calls), mode)

    def _lay_out(self, calls: int, mode: str) -> None:
        """New memory for `calls` calls, and the calls prepared."""
        with self._phases.timed("prepare"):
            self._calls = []
            fields = self._exchange.open_inputs(calls, with_state=False)
            fields |= self._exchange.open_outputs(calls * self._bytes_per_call())
            assert self._exchange.inputs is not None
            assert self._exchange.outputs is not None
            self._exchange.fill({i: self._draw(i) for i in range(calls)})
            self._device.synchronize()
            both = (self._exchange.inputs.fd, self._exchange.outputs.fd)
            fds = both if both[0] >= 0 else ()
            self._peer.command("attach", Reply.PREPARED, self._budget.run_s, fds, **fields)
            order = list(range(calls))
            secrets.SystemRandom().shuffle(order)
            self._order = self._prepare(mode, order)

    def _lengthen(self, wall_s: float) -> bool:
        """Prepare more calls if a repetition that took `wall_s` is too short to be timed well; says whether it did.

        The first guess comes from calls over the channel, which take a fraction of a millisecond however small the
        kernel.
        """
        calls, plan = len(self._order), self._schedule
        each_s = max((wall_s - plan.usual_handoff_s) / calls, SHORTEST_CALL_S)
        wanted = min(math.ceil(plan.target_s / each_s), plan.most_calls, self._most_calls_in_memory())
        if calls * each_s > ENOUGH * plan.target_s or wanted < 1.5 * calls:
            return False
        self._lay_out(wanted, self._mode)
        return True

    def _prepare(self, mode: str, order: list[int]) -> list[int]:
        """Have the calls of `order` prepared; returns those that fit the memory for outputs.

        Raises:
            NotCapturable: A forward that synchronises, or reads a value on the host, was to be captured.
            Stop: With the verdict.
        """
        try:
            packet = self._peer.command("prepare", Reply.PREPARED, self._budget.run_s, mode=mode, order=order)
        except Stop as stop:
            if mode == "graph" and stop.failure is Failure.NOT_CAPTURABLE:
                raise NotCapturable from None
            raise
        except CandidateGone:
            if mode == "graph":
                raise NotCapturable from None
            raise
        self._mode = mode
        ready = max(1, min(packet.prepared, len(order)))
        if mode == "graph":
            self._calls = self._check_layouts(self._peer.describe(), order[:ready])
        return order[:ready]

    def _choose_calls(self, rough_s: float, most_calls: int | None) -> int:
        footprint = self._reference.input_bytes + self._reference.output_bytes
        plan = self._schedule
        cold = math.ceil(plan.cold_factor * self._device.last_level_cache_bytes() / max(footprint, 1))
        wanted = max(plan.least_calls, math.ceil(plan.target_s / max(rough_s, 1e-7)), min(cold, 256))
        memory = self._most_calls_in_memory()
        if memory < 1:
            raise MemoryError("not enough memory for one call")
        wanted = min(wanted, plan.most_calls, memory)
        return max(1, min(wanted, most_calls) if most_calls else wanted)

    def _most_calls_in_memory(self) -> int:
        return int(0.45 * self._device.free_bytes() / (self._reference.set_bytes + self._bytes_per_call()))

    def _bytes_per_call(self) -> int:
        slack = self._schedule.slack_bytes
        claimed = min(self._allocated, 8 * (self._reference.output_bytes + self._reference.input_bytes) + slack)
        return max(self._reference.output_bytes, claimed) + slack

    def check(self, trials: int = TRIALS) -> None:
        """Correctness trials: single calls on fresh inputs, every distribution at least once.

        Raises:
            Stop: With the verdict.
        """
        self._peer.stage = Stage.CORRECTNESS
        kinds = list(self._reference.distributions)
        with self._phases.timed("correctness"):
            for number in range(max(trials, len(kinds))):
                index = secrets.choice(self._order)
                draw = replace(self._draw(index), distribution=kinds[number % len(kinds)])
                self._repeat(Plan.SINGLE + index, [index], {index: draw})

    def time(self, handoff_s: float | None) -> Measured:
        """Timed repetitions, all outputs verified.

        Raises:
            Stop: With the verdict.
        """
        self._peer.stage = Stage.TIMING
        with self._phases.timed("timing"):
            self._quiet(True)
            try:
                samples, repetitions = self._sample()
            finally:
                self._quiet(False)
        return Measured(
            self._mode,
            estimate(
                samples,
                handoff_s,
                self._schedule.negligible_handoff,
                from_least=self._schedule.from_least,
                alone=self._mode == "eager",
            ),
            samples.calls,
            repetitions,
            self._max_abs_err,
        )

    @property
    def mode(self) -> str:
        """How calls are run: `graph` or `eager`."""
        return self._mode

    def again_eagerly(self) -> Measured:
        """Time the same calls from a Python loop. For the reference, whose plain eager time is reported beside it."""
        order = self._order
        self._order = self._prepare("eager", order)
        self._calls = []
        return self.time(None)

    def untimed(self, rough_s: float) -> Measured:
        """Result for a candidate whose time means nothing, such as interpreted Triton."""
        rough = Estimate(rough_s, rough_s, rough_s, 0.0)
        return Measured("interpreted", rough, len(self._order), 0, self._max_abs_err)

    def _sample(self) -> tuple[Samples, int]:
        wall_s = self._repeat(Plan.ALL, self._order, self._draws())  # warm: page tables, clocks
        if self._lengthen(wall_s):
            self._repeat(Plan.ALL, self._order, self._draws())
        calls = len(self._order)
        half = max(1, calls // 2)
        walls: dict[Plan, list[float]] = {Plan.ALL: [], Plan.HALF: [], Plan.SINGLE: []}
        plans = [Plan.ALL] * self._schedule.whole_repetitions + [Plan.SINGLE] * self._schedule.short_repetitions
        if 1 < half < calls:
            plans += [Plan.HALF] * self._schedule.short_repetitions
        secrets.SystemRandom().shuffle(plans)
        empty = (
            [self._repeat(Plan.NONE, [], {}) for _ in range(EMPTY_REPETITIONS)] if self._schedule.times_empty else []
        )
        end = time.monotonic() + TIMING_BUDGET_S
        for plan in plans:
            enough = len(walls[Plan.ALL]) >= LEAST_WHOLE_REPETITIONS and bool(walls[Plan.SINGLE])
            if enough and time.monotonic() > end:
                break
            if plan is Plan.SINGLE:
                chosen = [secrets.choice(self._order)]
                number = Plan.SINGLE + chosen[0]
            else:
                chosen, number = (self._order if plan is Plan.ALL else self._order[:half]), int(plan)
            walls[plan].append(self._repeat(number, chosen, {i: self._draw(i) for i in chosen}))
        samples = Samples(
            calls, half, tuple(walls[Plan.ALL]), tuple(walls[Plan.HALF]), tuple(walls[Plan.SINGLE]), tuple(empty)
        )
        return samples, sum(len(w) for w in walls.values())

    def _draws(self) -> dict[int, Draw]:
        return {i: self._draw(i) for i in self._order}

    def _draw(self, index: int) -> Draw:
        return fresh_draw(self._reference.distributions)

    def _repeat(self, plan: int, chosen: list[int], draws: dict[int, Draw]) -> float:
        """One repetition; wall seconds between "go" and "done".

        Raises:
            Stop: Anything was wrong.
        """
        peer, exchange = self._peer, self._exchange
        draws = self._fill_unseen(draws)
        others = [c for c in self._calls if c.call not in draws] if self._mode == "graph" else []
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
            self._exchange.poison(self._calls)
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
        if self._mode == "graph":
            calls = [c for c in self._calls if c.call in draws]
            print_one = exchange.fingerprint(calls)
        else:
            print_one = exchange.fingerprint(None)
            self._peer.resume()
            calls = self._check_layouts(self._peer.describe(), chosen)
            self._peer.freeze()
            if exchange.fingerprint(None) != print_one:
                raise Stop(Verdict.TIMING_REJECTED, stage, LATE_TEXT)
            self._calls = calls
        self._witness.mark()
        for called in calls:
            self._verify_call(called, draws[called.call])
        # A process that woke up could have written what was then compared, and even taken it back.
        is_changed = exchange.fingerprint(calls if self._mode == "graph" else None) != print_one
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
            self._max_abs_err = max(self._max_abs_err, result.max_abs_err)
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

    def _check_layouts(self, calls: list[Called], chosen: Sequence[int]) -> list[Called]:
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
