"""The guards of the protocol and the sandbox, each with a switch that exists in the tests alone.

    python -m tests.without GUARD MODULE ARGUMENTS...    runs a trusted program with one guard off

A guard whose removal lets its exploit through is a guard. `bench.guards` tries all of them and keeps what came out.
"""

import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from server.evaluator import child_programs, evaluator
from server.evaluator.evaluator import Evaluator
from server.policy import Policy
from server.sandbox import isolation
from server.sandbox.isolation import Isolation
from server.settings import Settings


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard, and the submission that shows it."""

    name: str
    what: str
    case: str
    """Path below tests/corpus, without the suffix."""

    program: str
    """Which process it is in: `judge.program`, or `evaluator` where it is a value that is passed down."""


GUARDS = (
    Guard(
        "fresh_inputs", "new inputs in every repetition", "tanh/nondeterministic_replays_by_address", "judge.program"
    ),
    Guard(
        "timed_outputs",
        "outputs of timed calls are compared",
        "tanh/nondeterministic_replays_after_warm_up",
        "judge.program",
    ),
    Guard("poison", "outputs are filled with random bits", "tril/incorrect_value_leaves_the_zeros", "judge.program"),
    Guard("late_writes", 'secret places are read at "done"', "tanh/timing_rejected_done_too_early", "judge.program"),
    Guard("witness", "a stopped process used no CPU time", "tanh/timing_rejected_wakes_itself", "judge.program"),
    Guard("parameters", "parameters are perturbed", "affine/incorrect_value_skips_the_parameters", "judge.program"),
    Guard("distributions", "several distributions", "tanh/incorrect_value_right_for_usual_values", "judge.program"),
    Guard("inputs", "inputs are compared with a copy", "tanh/input_modified_in_place", "judge.program"),
    Guard("tolerance", "bounds by precision contract and row", "tanh/incorrect_value_low_precision", "judge.program"),
    Guard(
        "lone_calls", "no call of a loop is shorter than one alone", "tanh/passed_batches_the_calls", "judge.program"
    ),
    Guard(
        "subtraction",
        "the larger of slope and subtraction counts",
        "tanh/passed_sleeps_when_few_calls_are_asked_for",
        "judge.program",
    ),
    Guard(
        "structure",
        "outputs are plain tensors in the reference's structure",
        "tanh/incorrect_structure_tuple",
        "judge.program",
    ),
    Guard("policy", "a call's operators are recorded", "tanh/no_kernel_in_a_thread", "evaluator"),
    Guard("landlock", "Landlock", "tanh/passed_cannot_write_elsewhere", "evaluator"),
    Guard("seccomp", "a filter of system calls", "tanh/passed_reaches_nobody", "evaluator"),
)


def guard(name: str) -> Guard:
    """By name."""
    return next(guard for guard in GUARDS if guard.name == name)


def put(owner: object, **attributes: Any) -> None:
    """Replace attributes of a class or a module."""
    for name, value in attributes.items():
        setattr(owner, name, value)


def _nothing(*_: object, **__: object) -> None:
    return None


def _true(*_: object, **__: object) -> bool:
    return True


def _false(*_: object, **__: object) -> bool:
    return False


def _off_in_judge() -> dict[str, Callable[[], None]]:  # noqa: C901 one small function per guard
    """What takes each guard out of a judge that is about to start."""
    from kernel_env.terms import Precision, Stage
    from server.judge import compare, evaluation, exchange, findings, layouts, repetition, timing, witness
    from server.judge.distributions import Distribution, Draw
    from server.judge.reference import Reference
    from server.judge.seeds import Seeds

    def fresh_inputs() -> None:
        def draws(_: Seeds, __: Any, calls: Any, *___: object) -> dict[int, Draw]:
            return {call: Draw(call + 1, Distribution.NORMAL) for call in calls}

        put(Seeds, draws=draws)

    def timed_outputs() -> None:
        compared = repetition.Repeater._verify_calls

        def verify_calls(self: repetition.Repeater, calls: Any, draws: Any) -> None:
            if self._peer.stage is not Stage.TIMING:
                compared(self, calls, draws)

        put(repetition.Repeater, _verify_calls=verify_calls)

    def poison() -> None:
        put(exchange.Exchange, poison=_nothing)

    def late_writes() -> None:
        put(exchange.Exchange, still_holds=_true)

    def no_witness() -> None:
        put(witness.Witness, has_run=_false)

    def parameters() -> None:
        put(Reference, perturb=_nothing)

    def distributions() -> None:
        calibrated = Reference._calibrate

        def calibrate(self: Reference) -> Any:
            return (Distribution.AS_GIVEN,), calibrated(self)[1]

        put(Reference, _calibrate=calibrate)

    def inputs() -> None:
        put(exchange.Exchange, inputs_intact=_true)
        put(findings.Findings, inputs=_nothing)

    def tolerance() -> None:
        compare.BASE[Precision.IEEE] = compare.Tolerance(rtol=1e-2, stol=1e-2)

    def lone_calls() -> None:
        estimate = timing.estimate

        def estimated(*arguments: Any, **options: Any) -> Any:
            return estimate(*arguments, **{**options, "alone": False})

        put(timing, LONE_FACTOR=float("inf"))
        put(evaluation, estimate=estimated)

    def subtraction() -> None:
        estimate = timing.estimate

        def estimated(samples: timing.Samples, *arguments: Any, **options: Any) -> Any:
            rise = timing.slope(samples)
            found = estimate(samples, *arguments, **{**options, "alone": False})
            return found if rise is None else replace(found, t_s=max(rise, timing.SHORTEST_S))

        put(evaluation, estimate=estimated)

    def structure() -> None:
        checked = layouts.check_called

        def check_called(called: Any, spec: Any, must_be_routed: bool) -> Any:
            return checked(replace(called, structure=spec.structure), spec, must_be_routed)

        put(evaluation, check_called=check_called)
        put(repetition, check_called=check_called)

    return {
        "fresh_inputs": fresh_inputs,
        "timed_outputs": timed_outputs,
        "poison": poison,
        "late_writes": late_writes,
        "witness": no_witness,
        "parameters": parameters,
        "distributions": distributions,
        "inputs": inputs,
        "tolerance": tolerance,
        "lone_calls": lone_calls,
        "subtraction": subtraction,
        "structure": structure,
    }


@contextmanager
def evaluator_without(off: Guard, settings: Settings) -> Iterator[Evaluator]:
    """An evaluator with one guard off."""
    usual_command, usual_isolation = child_programs.command_of, isolation.available

    def command_of(module: str, arguments: Sequence[str]) -> list[str]:
        usual = usual_command(module, arguments)
        if module != off.program:
            return usual
        at = usual.index("-m")
        return [*usual[:at], "-m", "tests.without", off.name, *usual[at + 1 :]]

    def available(uid: int) -> Isolation:
        changes: dict[str, dict[str, Any]] = {"landlock": {"landlock_abi": 0}, "seccomp": {"seccomp": False}}
        return replace(usual_isolation(uid), **changes.get(off.name, {}))

    if off.name == "policy":
        settings = replace(settings, policy=Policy.OFF)
    put(child_programs, command_of=command_of)
    put(evaluator, available=available)
    try:
        made = Evaluator(settings)
        try:
            yield made
        finally:
            made.close()
    finally:
        put(child_programs, command_of=usual_command)
        put(evaluator, available=usual_isolation)


def main() -> None:
    """Run a trusted program without a guard."""
    name, module = sys.argv[1:3]
    _off_in_judge()[name]()
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
