"""Tries every protection and every assumption about the host, and says what does not hold. Trusted code.

Nothing is concluded from version numbers: a confined process makes the attempt. Attempts run in processes of their own,
so a server with threads may call this.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from ..errors import EvaluatorError, KernelEnvError
from . import environ, gpu_checks, isolation, probes, program, roots
from .confine import Confinement
from .isolation import UNUSABLE, Isolation, Level
from .limits import MIB, Limits
from .slots import Slot, SlotPool
from .warden_client import WardenClient, start_warden

PROBE_TIMEOUT_S = 60.0
SMALL = Limits(host_memory_bytes=512 * MIB, processes=24)
"""Limits that a probe reaches within a second."""

WATCHDOG_DEADLINE_S = 5.0


class State(StrEnum):
    """Outcome of a check."""

    OK = "ok"
    WEAK = "weak"
    """Works, with less protection than on another host."""

    MISSING = "missing"
    """Not installed or not given by the host; something else still works without."""

    REFUSED = "refused"
    """An assumption fails, and evaluations on this host would be wrong or unsafe."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its outcome."""

    name: str
    state: State
    detail: str
    """One sentence."""


Extra = Callable[[], Check]

REFUSALS = {
    "inet_socket": "a network socket",
    "unix_socket": "a Unix socket",
    "read_secret": "reading a file of root's",
    "write_outside": "writing a file outside of the scratch directory",
    "write_shm": "shared memory files",
    "read_environ": "reading the environment of another process",
    "signal_parent": "signalling the process that started it",
    "ptrace": "tracing another process",
    "namespace": "a new namespace",
    "session": "leaving the session",
    "forks": "more processes than allowed",
}
"""Probe to what a candidate must not get."""

ABILITIES = {
    "thread_name": "naming a thread, which CUDA does",
    "compiler": "compiling and running a C++ program",
}
"""Probe to what a candidate must be able to do."""


def run_checks(
    *,
    uid_base: int,
    device_kind: str,
    visible_devices: Sequence[str] = (),
    devices: Sequence[str] = (),
    with_imports: bool = True,
    extra: Sequence[Extra] = (),
) -> tuple[Check, ...]:
    """Check this host.

    Args:
        uid_base: First uid of candidates.
        device_kind: `cuda` or `cpu`.
        visible_devices: Devices that evaluations will use, as `CUDA_VISIBLE_DEVICES` names them.
        devices: Device nodes that a candidate opens.
        with_imports: Import torch and triton, which takes seconds.
        extra: Checks of other parts; one that raises `KernelEnvError` is reported as refused.
    """
    checks = [_compiler("gcc"), _compiler("g++"), _compiler("ninja")]
    try:
        found = isolation.available(uid_base)
        checks.append(_level(found))
        if not found.is_usable:
            raise EvaluatorError(UNUSABLE + "; ".join(found.missing))
        with _laboratory(uid_base, found, device_kind, visible_devices, devices) as laboratory:
            checks += _confinement_checks(laboratory)
            checks += _warden_checks(laboratory)
            if with_imports:
                (detail,) = laboratory.attempt("packages")
                checks.append(Check("packages", State.MISSING if "absent" in detail else State.OK, detail))
            if devices:
                (detail,) = laboratory.attempt("devices")
                checks.append(Check("device nodes", State.OK if detail == "done" else State.REFUSED, detail))
    except (KernelEnvError, OSError) as error:
        checks.append(Check("sandbox", State.REFUSED, str(error)))
    if device_kind == "cuda":
        checks.append(_compiler("nvcc"))
        checks += [Check(name, State(state), detail) for name, state, detail in gpu_checks.run(visible_devices)]
    return (*checks, *(_guarded(check) for check in extra))


class _Laboratory:
    """A slot under a warden, in which probes are run one after the other."""

    def __init__(self, pool: SlotPool, warden: WardenClient, scene: probes.Scene) -> None:
        self.pool, self.warden = pool, warden
        self._scene = scene

    @contextmanager
    def running(self, names: str) -> Iterator[tuple[Slot, subprocess.Popen[bytes]]]:
        """Probes in a fresh slot under the warden, killed at the end."""
        slot = self.pool.acquire(PROBE_TIMEOUT_S)
        environment = environ.environment(slot.scratch, "cpu", cores=2)
        confinement = replace(
            self._scene.confinement,
            scratch=slot.scratch,
            uid=slot.uid,
            gid=slot.gid,
            environment=environment,
            limits=SMALL,
        )
        if "compiler" in names or names == "packages":
            confinement = replace(confinement, limits=Limits())
        scene = replace(self._scene, confinement=confinement)
        process: subprocess.Popen[bytes] | None = None
        try:
            if slot.uid is not None:
                self.pool.watch(slot, confinement.limits)
            process = subprocess.Popen(
                program.command("probes", names, probes.SCENE.dump_json(scene).decode()),
                env=program.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            if slot.uid is None:
                self.pool.watch(slot, confinement.limits, root_pid=process.pid)
            yield slot, process
        finally:
            if process is not None:
                process.kill()  # before its confinement it has no uid of its own
                with suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=PROBE_TIMEOUT_S)
            self.pool.release(slot)

    def attempt(self, *names: str) -> tuple[str, ...]:
        """What came of each of several probes that end by themselves, made by one candidate."""
        with self.running(",".join(names)) as (_, process):
            try:
                lines = process.communicate(timeout=PROBE_TIMEOUT_S)[0].decode(errors="replace").splitlines()
                reason = f"no answer, ended with {process.returncode}"
            except subprocess.TimeoutExpired:
                lines, reason = [], "no answer in time"
        if len(lines) > len(names):  # it failed before the first probe, and this is the traceback
            lines, reason = [], lines[-1]
        return (*lines, *[reason] * (len(names) - len(lines)))


@contextmanager
def _laboratory(
    uid_base: int, found: Isolation, device_kind: str, visible: Sequence[str], devices: Sequence[str]
) -> Iterator[_Laboratory]:
    """Set up a warden and a pool of one slot in a temporary directory."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kernel-env-doctor-")))
        secret, foreign = directory / "secret", directory / "foreign"
        for path, mode in ((secret, 0o600), (foreign, 0o666)):
            path.touch()
            path.chmod(mode)
        directory.chmod(0o711)
        started = start_warden(1)
        stack.callback(started.close)
        warden = WardenClient(started.sockets[0])
        pool = SlotPool(uid_base, 1, directory / "slots", not found.uid, warden)
        stack.callback(pool.close)
        confinement = Confinement(
            scratch="/",
            log_fd=1,
            isolation=found,
            environment=environ.environment("/", device_kind, cores=1, visible_device=next(iter(visible), "0")),
            readable=roots.default_readable(),
            uid=uid_base if found.uid else None,
            gid=uid_base if found.uid else None,
            devices=tuple(devices),
        )
        yield _Laboratory(pool, warden, probes.Scene(confinement, str(secret), str(foreign)))


def _confinement_checks(laboratory: _Laboratory) -> list[Check]:
    """What must be refused, and what must not."""
    checks = []
    for (probe, what), outcome in zip(REFUSALS.items(), laboratory.attempt(*REFUSALS), strict=True):
        detail = f"{what} is refused" if outcome == "refused" else f"{what}: {outcome}"
        checks.append(Check(probe, State.OK if outcome == "refused" else State.WEAK, detail))
    for (probe, what), outcome in zip(ABILITIES.items(), laboratory.attempt(*ABILITIES), strict=True):
        detail = f"{what} works" if outcome == "done" else f"{what}: {outcome}"
        checks.append(Check(probe, State.OK if outcome == "done" else State.REFUSED, detail))
    return checks


def _warden_checks(laboratory: _Laboratory) -> list[Check]:
    """Whether killing, freezing and watching work on live processes."""
    return [_kill_check(laboratory), _freeze_check(laboratory), _memory_check(laboratory)]


def _kill_check(laboratory: _Laboratory) -> Check:
    """Nothing may be left of a candidate that scattered its children."""
    with laboratory.running("survivors") as (slot, process):
        if process.stdout is None or process.stdout.readline() != probes.READY:
            return Check("kill", State.REFUSED, "the probe did not start")
        before = laboratory.warden.census((slot.index,))[0].processes
        settled = laboratory.warden.kill((slot.index,))
    if settled.ok:
        return Check("kill", State.OK, f"{before} scattered processes were killed, none is left")
    return Check("kill", State.REFUSED, "a process survived its candidate")


def _freeze_check(laboratory: _Laboratory) -> Check:
    """Four busy threads must stand still, and go on afterwards."""
    with laboratory.running("threads") as (slot, process):
        if process.stdout is None or process.stdout.readline() != probes.READY:
            return Check("freeze", State.REFUSED, "the probe did not start")
        beat = Path(slot.scratch) / "beat"
        began = time.perf_counter()
        settled = laboratory.warden.freeze((slot.index,))
        latency_ms = (time.perf_counter() - began) * 1e3
        first = beat.stat().st_mtime_ns
        time.sleep(0.1)
        still = beat.stat().st_mtime_ns == first
        laboratory.warden.thaw((slot.index,))
        time.sleep(0.1)
        again = beat.stat().st_mtime_ns != first
    if settled.ok and still and again:
        return Check("freeze", State.OK, f"every thread stopped, within {latency_ms:.1f} ms, and went on")
    return Check("freeze", State.REFUSED, "a frozen candidate went on, or a thawed one did not")


def _memory_check(laboratory: _Laboratory) -> Check:
    """A candidate over its memory must be ended, and the reason known."""
    with laboratory.running("memory") as (slot, _):
        stop_at = time.monotonic() + WATCHDOG_DEADLINE_S
        while time.monotonic() < stop_at:
            killed = laboratory.warden.census((slot.index,))[0].killed
            if killed is not None:
                return Check("watchdog", State.OK, f"a candidate over its limit was ended: {killed}")
            time.sleep(0.05)
    return Check("watchdog", State.REFUSED, "a candidate over its memory limit was left running")


def _level(found: Isolation) -> Check:
    """Isolation as a whole."""
    if found.level is Level.STRONG:
        return Check("isolation", State.OK, "; ".join(("strong", *found.missing)))
    return Check("isolation", State.WEAK, "; ".join(("weak", *found.missing)))


def _compiler(name: str) -> Check:
    """Whether candidates will find a tool. Submissions that do not need it work without."""
    path = shutil.which(name, path=environ.environment("/", "cpu", cores=1)["PATH"])
    return Check(name, State.OK if path else State.MISSING, "found" if path else "not found on PATH")


def _guarded(check: Extra) -> Check:
    """Run a check of another part."""
    try:
        return check()
    except KernelEnvError as error:
        return Check(getattr(check, "__name__", "extra"), State.REFUSED, str(error))
