"""The evaluator of a server: static stage, a confined candidate, and a judge per device, for many sessions at once.

Trusted side; this process never imports torch, never opens CUDA and never runs submitted code. Import and host
compilation of one submission overlap with the evaluation of another; everything on the device goes through its lease.
"""

import logging
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernel_env.terms import Stage, Verdict

from ..errors import EvaluatorError, KernelEnvError
from ..sandbox import scratch
from ..sandbox.isolation import UNUSABLE, Isolation, available
from ..sandbox.slots import SlotPool
from ..sandbox.warden_client import WardenClient, start_warden
from ..sandbox.warden_wire import PACKET_BYTES
from ..settings import Settings
from ..tasks.task import Task
from . import feedback
from .audit import Archive, environment
from .canary import CANARY
from .child_programs import Judge, Zygote, program_environment
from .devices import find_devices, kind_of
from .interface import DeviceInfo, EvaluatorStatus
from .places import Places
from .results import EvalResult, Submission
from .static_checks import check
from .station import Station
from .task_on_device import Shop, threads_for
from .work import Work

logger = logging.getLogger(__name__)

END_TIMEOUT_S = 1.5
"""For evaluations that are cut short to notice it: their judge and their candidate are gone."""

REMOVAL_DEADLINE_S = 1.0

NO_DEVICE = "no device is usable now; each is tried again every minute"

QUARANTINE_S = 60.0
"""Between two attempts to use a device again on which a trusted module failed."""


class Evaluator:
    """Implements `interface.Evaluation` on real devices."""

    def __init__(self, settings: Settings) -> None:
        """Start the warden, the zygote and a judge per device; returns when all are ready.

        Raises:
            EvaluatorError: A device cannot be used, or isolation is demanded and cannot be given.
        """
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._running = self._choices = 0
        self._is_closed = threading.Event()
        self._stations: list[Station] = []
        self._archive = Archive(settings.audit_dir, settings.audit)
        gpu_ids = find_devices(settings.devices)
        self._kind = kind_of(gpu_ids[0])
        isolation = available(settings.uid_base)
        if not isolation.is_usable:
            raise EvaluatorError(UNUSABLE + "; ".join(isolation.missing))
        if settings.require_isolation and isolation.level != "strong":
            raise EvaluatorError("isolation is required and not given: " + "; ".join(isolation.missing))
        with ExitStack() as stack:
            self._shop = self._start(settings, isolation, gpu_ids, stack)
            self._cleanup = stack.pop_all()
        threading.Thread(target=self._nurse, name="nurse", daemon=True).start()

    def _start(self, settings: Settings, isolation: Isolation, gpu_ids: Sequence[str], stack: ExitStack) -> Shop:
        root = Path(tempfile.mkdtemp(prefix="kernel-env-"))
        stack.callback(_remove, root)
        root.chmod(0o711)
        process = start_warden(1 + len(gpu_ids))
        stack.callback(process.close)
        self._warden = process.process
        warden = WardenClient(process.sockets[0])
        count = settings.slots + len(gpu_ids)  # the reference of each device has a slot of its own
        pool = SlotPool(settings.uid_base, count, root / "slots", not isolation.uid, warden)
        stack.callback(pool.close)
        stack.callback(self._await_end)
        places = Places(
            settings.slots, settings.max_waiting, pool, warden, lambda: self._start_zygote(root / "libraries")
        )
        stack.callback(places.close)
        threads = threads_for(self._kind, len(gpu_ids))
        for gpu_id, sock in zip(gpu_ids, process.sockets[1:], strict=True):
            self._stations.append(self._start_station(gpu_id, sock, root / "judges", threads))
            stack.callback(self._stations[-1].close)
        places.wait_ready()
        for station in self._stations:
            station.wait_ready()
        stack.callback(warden.close)  # first to go: the warden then kills every candidate
        return Shop(self._kind, threads, settings, isolation, places, {})

    def _start_zygote(self, libraries: Path) -> Zygote:
        libraries.mkdir(mode=0o755, exist_ok=True)
        extra = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if self._kind == "cpu":
            extra["TRITON_INTERPRET"] = "1"
        else:
            extra["PYTORCH_ALLOC_CONF"] = "backend:native,expandable_segments:False"
        return Zygote(self._kind, libraries, program_environment(self._kind, "", extra))

    def _start_station(self, gpu_id: str, warden: socket.socket, caches: Path, threads: int) -> Station:
        own = {
            "TRITON_CACHE_DIR": str(caches / gpu_id.replace(":", "-")),
            # Idle OpenMP threads spin for milliseconds by default: on a core that the candidate is being timed on.
            "OMP_WAIT_POLICY": "passive",
            "GOMP_SPINCOUNT": "0",
        }
        environment = program_environment(self._kind, gpu_id, own)
        local = "cpu" if self._kind == "cpu" else "cuda:0"  # the judge sees only its own device

        def start_judge() -> Judge:
            _forget_answers(warden)
            return Judge(local, warden, threads, environment)

        return Station(gpu_id, start_judge)

    @property
    def devices(self) -> tuple[DeviceInfo, ...]:
        """Devices of this server."""
        return tuple(DeviceInfo(s.gpu_id, self._kind, s.name) for s in self._stations)

    def status(self) -> EvaluatorStatus:
        """Isolation and load."""
        isolation = self._shop.isolation
        waiting = self._shop.places.free.waiting + sum(station.lease.waiting for station in self._stations)
        devices = tuple(station.status() for station in self._stations)
        return EvaluatorStatus(isolation.level.value, isolation.missing, waiting, self._running, self._fault(), devices)

    def _fault(self) -> str | None:
        if self._warden.poll() is not None and not self._is_closed.is_set():
            return "the warden ended: submissions can no longer be stopped"
        if not any(station.is_healthy for station in self._stations):
            return NO_DEVICE
        return None

    def close(self) -> None:
        """End every child process. Safe to call twice."""
        with self._lock:
            self._is_closed.set()
            cleanup, self._cleanup = self._cleanup, ExitStack()
        cleanup.close()

    def _await_end(self) -> None:
        """Let the evaluations at work notice the end, so that nobody uses what is removed next."""
        with self._ended:
            self._ended.wait_for(lambda: self._running == 0, END_TIMEOUT_S)

    def evaluate(
        self,
        task: Task,
        submission: Submission,
        *,
        session_id: str = "",
        start_within_s: float | None = None,
        is_cancelled: Callable[[], bool] | None = None,
        secret: str | None = None,
    ) -> EvalResult:
        """Judge one submission; see `interface.Evaluation.evaluate`.

        Args:
            secret: Of an audit bundle whose hidden values are to be used again.
        """
        start = time.monotonic()
        end = None if start_within_s is None else start + start_within_s
        phases: dict[str, float] = {}
        finding = check(submission)
        phases["static"] = time.monotonic() - start
        base = EvalResult(
            verdict=Verdict.REJECTED,
            stage=Stage.STATIC,
            feedback="",
            precision=task.precision,
            device=self._stations[0].name,
            gpu_id=self._stations[0].gpu_id,
            isolation=self._shop.isolation.level.value,
            phases=phases,
        )
        if finding is not None:
            text = feedback.for_failure(finding.verdict, finding.message, "")
            return replace(base, verdict=finding.verdict, feedback=text, eval_s=phases["static"])
        with self._at_work(), self._chosen_station() as station:
            base = replace(base, device=station.name, gpu_id=station.gpu_id)
            work = Work(self._shop, station, task, session_id, end, is_cancelled, phases, secret)
            result = work.run(submission, base)
        total = time.monotonic() - start
        about: dict[str, Any] = {"queue_wait_s": work.waited_s, "eval_s": total - work.waited_s, "phases": phases}
        for judged in work.judged:
            seen = replace(judged.result, **about)
            self._archive.consider(judged.task, submission, seen, judged.trail, lambda: self._environment(station))
        return replace(result, **about)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """What `close` waits for."""
        with self._lock:
            if self._is_closed.is_set():
                raise EvaluatorError("the evaluator is closed")
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._ended.notify_all()

    def _nurse(self) -> None:
        """Try devices that are not used any more, now and then: what was wrong with them may have passed."""
        while not self._is_closed.wait(QUARANTINE_S):
            for station in self._stations:
                if station.is_healthy:
                    continue
                with suppress(KernelEnvError), self._at_work():
                    Work(self._shop, station, CANARY, "nurse", None, self._is_closed.is_set, {}).readmit()

    def environments(self) -> list[dict[str, Any]]:
        """Where each device judges, as audit bundles say it."""
        return [self._environment(station) for station in self._stations]

    def _environment(self, station: Station) -> dict[str, Any]:
        about = {"name": station.name, "gpu_id": station.gpu_id, "ceilings": dict(station.ceilings)}
        return environment(self._kind, about, self._shop.isolation.level.value)

    def self_test(self) -> dict[str, Any]:
        """Have every device judge a trusted module, memory shared between processes included; returns the ceilings.

        Raises:
            EvaluatorError: One cannot; the text says why.
        """
        for station in self._stations:
            Work(self._shop, station, CANARY, "self_test", None, None, {}).prove()
        return {s.gpu_id: dict(s.ceilings) for s in self._stations}

    @contextmanager
    def _chosen_station(self) -> Iterator[Station]:
        """The healthy device with the fewest evaluations on their way to it; of several, the one chosen longest ago."""
        with self._lock:
            healthy = [station for station in self._stations if station.is_healthy]
            if not healthy:
                raise EvaluatorError(NO_DEVICE)
            station = min(healthy, key=lambda station: (station.assigned, station.last_chosen))
            self._choices += 1
            station.assigned += 1
            station.last_chosen = self._choices
        try:
            yield station
        finally:
            with self._lock:
                station.assigned -= 1


def _forget_answers(sock: socket.socket) -> None:
    """Read what the warden still answered to a judge that ended: its successor would take it for its own answer."""
    with suppress(OSError):
        while sock.recv(PACKET_BYTES, socket.MSG_DONTWAIT):
            pass


def _remove(root: Path) -> None:
    """Remove the directory of a server that ended: every candidate is gone, so nothing in it moves."""
    for directory in ("libraries", "judges"):
        shutil.rmtree(root / directory, ignore_errors=True)
    slots = root / "slots"
    for left in slots.glob("slot*"):  # of evaluations that the end of the server cut short
        scratch.remove(str(left), deadline_s=REMOVAL_DEADLINE_S)
    for log in (slots / "logs").glob("*"):
        with suppress(OSError):
            log.unlink()
    for path in (slots / "logs", slots, root):
        with suppress(OSError):
            path.rmdir()
