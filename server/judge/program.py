"""The judge as a program: answers the evaluator's requests for one device, one at a time.

Trusted. Started as `python -m <package>.program FD WARDEN_FD GPU_ID THREADS`. Requests and answers are JSON over a
sequenced-packet socket between trusted processes; a candidate's channel and pidfd come beside the request.
"""

import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import torch

from kernel_env.terms import Precision, Stage, Verdict

from ..policy import Policy
from ..protocol import Channel, ChannelClosed
from ..sandbox import program
from ..sandbox.process_table import Target
from ..sandbox.warden_client import WardenClient
from .calibrate import calibrate
from .device import Device, open_device
from .evaluation import Evaluation, Measured, Phases
from .floors import floor_of
from .neighbours import Neighbours
from .peer import CandidateGone, NotCapturable, Peer, Stop
from .reference import Reference
from .repetition import Budget
from .roofline import Ceilings, Floor, is_plausible
from .schedule import SCHEDULES, most_shared_bytes
from .seeds import Seeds
from .structures import UnsupportedTask, encode_argument
from .timing import Estimate
from .witness import Witness

FLOOR_MARGIN = 0.95
"""A time below this share of the roofline is impossible, or the roofline is wrong."""

SUSPICIOUS_SPEEDUP = 50.0
REFERENCES_KEPT = 32
PARAMETER_SHARE = 0.1
"""Share of the free memory that kept references may take: their parameters, as made and as perturbed."""

INTERPRETED_TRIALS = 3

BASELINE_ATTEMPTS = 3
BUSY_FACTOR = 8.0
"""A handoff of so many times the usual one was measured on a busy host."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Times of the reference, measured like a submission in a process that never saw one."""

    graph: Estimate | None
    eager: Estimate

    def like(self, mode: str) -> Estimate:
        """The one measured in `mode`; eager where the reference cannot be captured."""
        return self.graph if mode == "graph" and self.graph is not None else self.eager


class Judge:
    """Requests for one device."""

    def __init__(self, channel: Channel, warden: WardenClient, device: Device) -> None:
        """Calibrate the device, with no candidate alive.

        Raises:
            RuntimeError: The calibration cannot be true.
        """
        self._channel, self._warden, self._device = channel, warden, device
        self._neighbours = Neighbours(
            quiet=lambda on: self._request(event="quiet", on=on), evict=lambda: self._request(event="evict")
        )
        self.ceilings: Ceilings = calibrate(device)
        if not is_plausible(device.name, self.ceilings):
            raise RuntimeError(f"calibrated bandwidth {self.ceilings.bandwidth_gb_s:.0f} GB/s is not believable")
        self._references: dict[str, Reference] = {}
        self._baselines: dict[str, Baseline] = {}

    def serve(self) -> None:
        """Until the evaluator closes its end."""
        handlers = {"card": self._card, "baseline": self._baseline, "evaluate": self._evaluate}
        while True:
            try:
                packet, fds = self._channel.receive_with_fds(2)
            except ChannelClosed:
                return
            request = json.loads(packet)
            try:
                answer = handlers[request["op"]](request, fds)
            except UnsupportedTask as error:
                answer = {"unsupported": str(error)}
            except (torch.OutOfMemoryError, MemoryError) as error:
                answer = {"fault": "memory", "text": str(error)[:500]}
            self._send(answer)

    def _send(self, answer: Mapping[str, object]) -> None:
        self._channel.send(json.dumps(answer, allow_nan=False).encode())

    def _reference(self, request: Mapping[str, Any]) -> Reference:
        key = request["task_key"]
        reference = self._references.pop(key, None)
        if reference is None:
            self._make_room()
            reference = Reference(
                request["task_id"],
                request["source"],
                Precision(request["precision"]),
                request["has_free_inputs"],
                self._device,
            )
        self._references[key] = reference  # most recent last
        return reference

    def _make_room(self) -> None:
        """Forget the references used longest ago, so that their parameters leave the device to evaluations."""
        limit = PARAMETER_SHARE * self._device.free_bytes()
        while self._references and (
            len(self._references) >= REFERENCES_KEPT
            or sum(2 * r.parameter_bytes for r in self._references.values()) > limit
        ):
            self._references.pop(next(iter(self._references)))

    def _card(self, request: Mapping[str, Any], fds: list[int]) -> dict[str, Any]:
        """What the evaluator has to know of a task before a candidate is loaded."""
        reference = self._reference(request)
        return {
            "init": [encode_argument(value) for value in reference.init],
            "has_baseline": request["task_key"] in self._baselines,
            "shared_bytes": min(most_shared_bytes(reference, SCHEDULES[self._device.kind]), self._device.free_bytes()),
        }

    def _evaluation(self, request: Mapping[str, Any], fds: list[int], phases: Phases) -> Evaluation:
        slot = request["slot"]
        peer = Peer(
            Channel(socket.socket(fileno=fds[0])),
            fds[1],
            freeze=lambda: self._warden.freeze((slot,)).ok,
            kill=lambda: self._warden.kill((slot,)).ok,
        )
        budget = Budget(request["compile_timeout_s"], request["run_timeout_s"])
        uid = request["uid"]
        witness = Witness(Target(uid=uid) if uid is not None else Target(root_pid=request["pid"]))
        seeds = Seeds(request.get("secret"))
        return Evaluation(
            self._device, self._reference(request), peer, budget, self._neighbours, phases, witness, seeds
        )

    def _request(self, **event: object) -> None:
        """Have the evaluator do something, in the middle of a request of its own."""
        self._send(event)
        self._channel.receive(timeout_s=60.0)

    def _baseline(self, request: Mapping[str, Any], fds: list[int]) -> dict[str, Any]:
        """Time the reference as if it were a submission. It must pass its own test."""
        phases = Phases()
        evaluation = self._evaluation(request, fds, phases)
        try:
            rough_s = evaluation.first_call()
            evaluation.prepare(rough_s, request["mode"])
            evaluation.check()
            first = self._undisturbed(evaluation)
            eager = first if first.mode == "eager" else evaluation.again_eagerly()
        except Stop as stop:
            return {"unsupported": f"the reference fails its own test: {stop.verdict}: {stop.text}"}
        except CandidateGone as gone:
            return {"gone": gone.stage, "phases": phases.seconds}
        except NotCapturable:
            return {"not_capturable": True}
        finally:
            evaluation.close()
        if not (first.estimate.is_time and eager.estimate.is_time):
            return {"unsupported": "its reference could not be timed: it does too little, or the host is too busy"}
        graph = first.estimate if first.mode == "graph" else None
        self._baselines[request["task_key"]] = Baseline(graph, eager.estimate)
        return {"ok": True, "phases": phases.seconds}

    def _undisturbed(self, evaluation: Evaluation) -> Measured:
        """Time of the reference. Where the handoff is measured by itself, the least of all tasks is its own.

        A message costs the same in every task. While none was measured at a quiet moment, the reference is timed again:
        what is subtracted too much pays every submission.
        """
        schedule = SCHEDULES[self._device.kind]
        measured = evaluation.time(None)
        if not schedule.times_empty:
            return measured
        known = [baseline.eager.handoff_s for baseline in self._baselines.values()]
        for _ in range(BASELINE_ATTEMPTS - 1):
            if min([measured.estimate.handoff_s, *known]) <= BUSY_FACTOR * schedule.usual_handoff_s:
                break
            measured = min(measured, evaluation.time(None), key=lambda each: each.estimate.handoff_s)
        least_s = min([measured.estimate.handoff_s, *known])
        return measured.with_handoff(least_s)

    def _handoff_s(self, baseline: Baseline, mode: str) -> float:
        """What is subtracted from a submission's repetitions; a later task may have had a quieter moment."""
        known = [baseline]
        if SCHEDULES[self._device.kind].times_empty:
            known += self._baselines.values()
        return min(each.like(mode).handoff_s for each in known)

    def _evaluate(self, request: Mapping[str, Any], fds: list[int]) -> dict[str, Any]:
        """Judge a loaded candidate."""
        phases = Phases()
        evaluation = self._evaluation(request, fds, phases)
        interpreted, policy = request["interpreted"], Policy(request["policy"])
        baseline = self._baselines[request["task_key"]]
        try:
            rough_s = evaluation.first_call()
            evaluation.prepare(rough_s, request["mode"], most_calls=2 if interpreted else None)
            if interpreted:
                evaluation.check(trials=INTERPRETED_TRIALS)
                evaluation.require_own_kernels(policy, request["level"])
                measured = evaluation.untimed(rough_s)
            else:
                evaluation.check()
                evaluation.require_own_kernels(policy, request["level"])
                measured = evaluation.time(self._handoff_s(baseline, evaluation.mode))
                if request["floor_validated"] and measured.estimate.t_s < FLOOR_MARGIN * self._floor(request).min_s:
                    measured = evaluation.time(self._handoff_s(baseline, evaluation.mode))
            share = None if interpreted else evaluation.own_share(policy, request["level"])
        except Stop as stop:
            return {
                "verdict": stop.verdict,
                "stage": stop.stage,
                "feedback": stop.text,
                "max_abs_err": stop.max_abs_err,
                "phases": phases.seconds,
                "trail": evaluation.trail.as_json(),
            }
        except CandidateGone as gone:
            return {"gone": gone.stage, "phases": phases.seconds, "trail": evaluation.trail.as_json()}
        except NotCapturable:
            return {"not_capturable": True, "phases": phases.seconds}
        finally:
            start = time.monotonic()
            evaluation.close()
            phases.seconds["teardown"] = time.monotonic() - start
        trail = evaluation.trail.as_json()
        return {**self._passed(request, measured, baseline, phases), "own_share": share, "trail": trail}

    def _floor(self, request: Mapping[str, Any]) -> Floor:
        return floor_of(self._reference(request), self._device, self.ceilings)

    def _passed(
        self, request: Mapping[str, Any], measured: Measured, baseline: Baseline, phases: Phases
    ) -> dict[str, Any]:
        limit = self._floor(request)
        like = baseline.like(measured.mode)
        too_fast = measured.mode != "interpreted" and measured.estimate.t_s < FLOOR_MARGIN * limit.min_s
        # No floor is needed to know that what took no time at all was not timed.
        is_known = request["floor_validated"] or not measured.estimate.is_time
        return {
            "verdict": Verdict.ROOFLINE_VIOLATION if too_fast and is_known else Verdict.PASSED,
            "stage": Stage.DONE,
            "feedback": "",
            "max_abs_err": measured.max_abs_err,
            "phases": phases.seconds,
            "suspicious": too_fast or like.t_s > SUSPICIOUS_SPEEDUP * measured.estimate.t_s,
            "timing": {
                "mode": measured.mode,
                "new_ms": measured.estimate.t_s * 1e3,
                "ci_low_ms": measured.estimate.ci_low_s * 1e3,
                "ci_high_ms": measured.estimate.ci_high_s * 1e3,
                "calls": measured.calls,
                "repetitions": measured.repetitions,
                "ref_ms": like.t_s * 1e3,
                "ref_eager_ms": baseline.eager.t_s * 1e3,
            },
            "roofline": {
                "min_ms": limit.min_s * 1e3,
                "bound": limit.bound,
                "bytes_moved": limit.bytes_moved,
                "flops": limit.flops,
            },
        }


def main() -> None:
    """Entry of the program."""
    channel_fd, warden_fd, gpu_id, threads = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    program.prctl(program.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=channel_fd))
    warden = WardenClient(socket.socket(fileno=warden_fd))
    try:
        device = open_device(gpu_id, threads)
        judge = Judge(channel, warden, device)
    except Exception as error:  # noqa: BLE001 whatever is wrong with the device, the evaluator reports it
        with suppress(ChannelClosed):
            channel.send(json.dumps({"error": f"{type(error).__name__}: {error}"[:2000]}).encode())
        return
    ready = {"ready": True, "name": device.name, "ceilings": asdict(judge.ceilings), "torch": torch.__version__}
    channel.send(json.dumps(ready).encode())
    try:
        judge.serve()
    except BaseException:  # noqa: BLE001 the evaluator sees the exit and asks a canary
        traceback.print_exc()
        os._exit(70)  # a broken CUDA context can hang the ordinary exit


if __name__ == "__main__":
    main()
