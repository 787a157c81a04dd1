"""One evaluation: first call, correctness on hidden inputs, timing over verified outputs. Trusted."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from kernel_env.terms import Stage, Verdict

from ..policy import Policy, asks_for_share, objection, objection_to_share
from ..protocol import Called, Failure, Plan, Reply, encode_command
from .device import Device
from .distributions import Draw
from .exchange import Exchange
from .layouts import check_called, dtype_name
from .neighbours import Neighbours
from .peer import CandidateGone, NotCapturable, Peer, Stop
from .reference import Reference
from .repetition import INPUT_MODIFIED_TEXT, Budget, Repeater
from .schedule import (
    EMPTY_REPETITIONS,
    ENOUGH,
    LEAST_WHOLE_REPETITIONS,
    SCHEDULES,
    SHORTEST_CALL_S,
    TIMING_BUDGET_S,
    most_bytes_per_call,
)
from .seeds import Seeds
from .timing import Estimate, Samples, estimate
from .trail import Repetition, Trail
from .witness import Witness

TRIALS = 6
"""Correctness trials; every distribution of the task comes up at least once."""

MEMORY_SHARE = 0.45
"""Of the free memory, for inputs and outputs of all calls. Calls may be laid out anew while the old ones are there."""

SLOTS_PER_PACKET = 400


@dataclass(frozen=True, slots=True)
class Measured:
    """What a correct evaluation yields."""

    mode: str
    estimate: Estimate
    calls: int
    repetitions: int
    max_abs_err: float
    estimate_with: Callable[[float | None], Estimate]
    """The same repetitions, estimated with another handoff."""

    def with_handoff(self, handoff_s: float) -> Self:
        """The same repetitions with another handoff subtracted."""
        return replace(self, estimate=self.estimate_with(handoff_s))


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
        neighbours: Neighbours,
        phases: Phases,
        witness: Witness,
        seeds: Seeds,
    ) -> None:
        """Evaluate the candidate behind `peer`, already loaded.

        Args:
            neighbours: Are stopped while it is timed.
            witness: Of the candidate's processes.
            seeds: Of the parameters and of all inputs.
        """
        self._device, self._reference, self._peer, self._budget = device, reference, peer, budget
        self._neighbours, self._phases = neighbours, phases
        self._exchange = Exchange(device, reference)
        self._repeater = Repeater(device, reference, peer, self._exchange, witness, neighbours, budget)
        self._schedule = SCHEDULES[device.kind]
        self._order: list[int] = []
        self._seeds = seeds
        self._layouts = 0
        self.trail = Trail(seeds.secret)

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
            self._reference.perturb(self._seeds.source("parameters").getrandbits(63))
            fields = self._exchange.open_inputs(1, with_state=True)
            draws = self._draws([0], "first")
            self._exchange.fill(draws)
            self._device.synchronize()
            self._bind(fields)
        with self._phases.timed("first_call"):
            called = self._call_once(self._budget.compile_s)
        refused = check_called(called, self._reference.output_spec, must_be_routed=False)
        if refused is not None:
            raise Stop(refused.verdict, Stage.CORRECTNESS, refused.text)
        self._allocated = called.allocated_bytes
        self._peer.stage = Stage.CORRECTNESS
        if not self._exchange.inputs_intact(0, self._exchange.private_inputs(0, draws[0])):
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
        slots = [(s.name, s.is_parameter, list(s.shape), dtype_name(s.dtype), s.offset) for s in self._reference.slots]
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
            self._repeater.calls = []
            fields = self._exchange.open_inputs(calls, with_state=False)
            fields |= self._exchange.open_outputs(calls * self._bytes_per_call())
            assert self._exchange.inputs is not None
            assert self._exchange.outputs is not None
            self._layouts += 1
            self._exchange.fill(self._draws(range(calls), "layout", self._layouts))
            self._device.synchronize()
            both = (self._exchange.inputs.fd, self._exchange.outputs.fd)
            fds = both if both[0] >= 0 else ()
            self._peer.command("attach", Reply.PREPARED, self._budget.run_s, fds, **fields)
            order = list(range(calls))
            self._seeds.source("order", self._layouts).shuffle(order)
            self._order = self._prepare(mode, order)
            self.trail.mode, self.trail.calls = mode, len(self._order)

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
        self._lay_out(wanted, self._repeater.mode)
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
        self._repeater.mode = mode
        ready = max(1, min(packet.prepared, len(order)))
        if mode == "graph":
            self._repeater.calls = self._repeater.check_layouts(self._peer.describe(), order[:ready])
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
        return int(MEMORY_SHARE * self._device.free_bytes() / (self._reference.set_bytes + self._bytes_per_call()))

    def _bytes_per_call(self) -> int:
        plan = self._schedule
        claimed = min(self._allocated, most_bytes_per_call(self._reference, plan))
        # What a call took counts what it gave back; the rest is for a module that uses that again.
        claimed = min(claimed, int(MEMORY_SHARE * self._device.free_bytes() / plan.least_calls) - plan.slack_bytes)
        return max(self._reference.output_bytes, claimed) + plan.slack_bytes

    def check(self, trials: int = TRIALS) -> None:
        """Correctness trials: single calls on fresh inputs, every distribution at least once.

        Raises:
            Stop: With the verdict.
        """
        self._peer.stage = Stage.CORRECTNESS
        kinds = list(self._reference.distributions)
        with self._phases.timed("correctness"):
            for number in range(max(trials, len(kinds))):
                index = self._seeds.source("trial", number).choice(self._order)
                draw = self._draws([index], "trial", number)[index]
                self._run(Plan.SINGLE, [index], {index: replace(draw, distribution=kinds[number % len(kinds)])})

    def require_own_kernels(self, policy: Policy, level: int) -> None:
        """Look at the operators one call runs.

        Raises:
            Stop: PyTorch does what the submission's kernels are to do.
        """
        try:
            with self._phases.timed("policy"):
                answer = self._peer.command("operators", Reply.OPERATORS, self._budget.run_s, set=0)
                self.trail.operators = answer.operators
        except Stop as stop:
            if stop.failure is Failure.EXCEPTION:
                return  # not every honest module runs under a recorder; an attacker could leave names out as well
            raise
        text = objection(policy, level, self.trail.operators)
        if text is not None:
            raise Stop(Verdict.NO_KERNEL, self._peer.stage, text)

    def own_share(self, policy: Policy, level: int) -> float | None:
        """Own kernels' share of the work where PyTorch computes as well, 0 to 1; None where it is all or not known.

        The last thing asked of a candidate.

        Raises:
            Stop: It is next to nothing.
        """
        if not asks_for_share(policy, level, self.trail.operators):
            return None
        try:
            with self._phases.timed("policy"):
                share = self._peer.command("share", Reply.SHARE, self._budget.run_s, set=0).share
        except (Stop, CandidateGone):
            return None  # without its kernels a module may fail in any way
        self.trail.own_share = share
        text = objection_to_share(share, self.trail.operators)
        if text is not None:
            raise Stop(Verdict.NO_KERNEL, self._peer.stage, text)
        return share

    def time(self, handoff_s: float | None) -> Measured:
        """Timed repetitions, all outputs verified.

        Raises:
            Stop: With the verdict.
        """
        self._peer.stage = Stage.TIMING
        with self._phases.timed("timing"):
            self.trail.clocks.append(self._device.clocks())
            self._neighbours.quiet(True)
            try:
                samples, repetitions = self._sample()
            finally:
                self._neighbours.quiet(False)
                self.trail.clocks.append(self._device.clocks())
        estimate_with = partial(
            estimate,
            samples,
            negligible=self._schedule.negligible_handoff,
            from_least=self._schedule.from_least,
            alone=self._repeater.mode == "eager",
        )
        return Measured(
            self._repeater.mode,
            estimate_with(handoff_s),
            samples.calls,
            repetitions,
            self._repeater.max_abs_err,
            estimate_with,
        )

    @property
    def mode(self) -> str:
        """How calls are run: `graph` or `eager`."""
        return self._repeater.mode

    def again_eagerly(self) -> Measured:
        """Time the same calls from a Python loop. For the reference, whose plain eager time is reported beside it."""
        order = self._order
        self._order = self._prepare("eager", order)
        self._repeater.calls = []
        return self.time(None)

    def untimed(self, rough_s: float) -> Measured:
        """Result for a candidate whose time means nothing, such as interpreted Triton."""
        rough = Estimate(rough_s, rough_s, rough_s, 0.0)
        return Measured("interpreted", rough, len(self._order), 0, self._repeater.max_abs_err, lambda _: rough)

    def _sample(self) -> tuple[Samples, int]:
        # Warm: page tables, clocks, kernels.
        wall_s = self._run(Plan.ALL, self._order, is_warm=False)
        if self._lengthen(wall_s):
            self._run(Plan.ALL, self._order, is_warm=False)
        calls = len(self._order)
        half = max(1, calls // 2)
        walls: dict[Plan, list[float]] = {Plan.ALL: [], Plan.HALF: [], Plan.SINGLE: [], Plan.NONE: []}
        plans = [Plan.ALL] * self._schedule.whole_repetitions + [Plan.SINGLE] * self._schedule.short_repetitions
        if 1 < half < calls:
            plans += [Plan.HALF] * self._schedule.short_repetitions
        if self._schedule.times_empty:
            # Among the others: a host that is busy for a moment would prolong all of them in a row.
            plans += [Plan.NONE] * EMPTY_REPETITIONS
            walls[Plan.NONE].append(self._run(Plan.NONE, []))
        source = self._seeds.source("plans", len(self.trail.repetitions))
        source.shuffle(plans)
        end = time.monotonic() + TIMING_BUDGET_S
        for plan in plans:
            enough = len(walls[Plan.ALL]) >= LEAST_WHOLE_REPETITIONS and bool(walls[Plan.SINGLE])
            if enough and time.monotonic() > end:
                break
            chosen = {Plan.ALL: self._order, Plan.HALF: self._order[:half], Plan.NONE: []}.get(plan)
            walls[plan].append(self._run(plan, [source.choice(self._order)] if chosen is None else chosen))
        whole, halves, single, empty = (tuple(walls[plan]) for plan in (Plan.ALL, Plan.HALF, Plan.SINGLE, Plan.NONE))
        return Samples(calls, half, whole, halves, single, empty), len(whole) + len(halves) + len(single)

    def _run(
        self, plan: Plan, chosen: list[int], draws: dict[int, Draw] | None = None, *, is_warm: bool = True
    ) -> float:
        """One repetition, on inputs of its own unless they are given; wall seconds."""
        number = len(self.trail.repetitions)
        if draws is None:
            draws = self._draws(chosen, "repetition", number)
        value = int(plan) + chosen[0] if plan is Plan.SINGLE else int(plan)
        wall_s = self._repeater.run(value, chosen, draws, is_warm=is_warm)
        self.trail.repetitions.append(Repetition(self._peer.stage, plan.name.lower(), len(chosen), wall_s))
        return wall_s

    def _draws(self, calls: Iterable[int], *label: str | int) -> dict[int, Draw]:
        return self._seeds.draws(self._reference.distributions, calls, *label)
