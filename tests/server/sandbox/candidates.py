"""Runs pieces of Python as a confined candidate, in both modes, under a real warden. For the tests of this folder."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from server.sandbox import environ, program, roots
from server.sandbox.confine import Confinement
from server.sandbox.isolation import Isolation
from server.sandbox.limits import Limits
from server.sandbox.slots import Slot, SlotPool
from server.sandbox.warden_client import WardenClient, start_warden

TEST_UIDS = 62000
SHARED_UID = 62900
"""Plays the unprivileged user that a server in weak mode shares with its candidates, where the tests run as root."""

CONFINEMENT = TypeAdapter(Confinement)
BOOT = """
import json, os, sys
from pydantic import TypeAdapter
from server.sandbox import program, reach
from server.sandbox.confine import Confinement, confine
confinement = TypeAdapter(Confinement).validate_json(sys.argv[1])
reach.make_reachable(confinement.readable)
if confinement.uid is None and os.getuid() == 0:
    program.become({shared}, {shared})
confine(confinement)
exec(sys.argv[2])
"""
UNCONFINED = """
import sys
from server.sandbox import program, reach, roots
reach.make_reachable(roots.default_readable())
program.become(int(sys.argv[1]), int(sys.argv[1]))
exec(sys.argv[2])
"""
TIMEOUT_S = 60.0
WAIT_S = 15.0


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether the condition becomes true in time."""
    stop_at = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > stop_at:
            return False
        time.sleep(0.01)
    return True


@dataclass
class Host:
    """A warden, a pool of two slots, and processes in them."""

    found: Isolation
    pool: SlotPool
    warden: WardenClient
    has_uid: bool

    @contextmanager
    def slot(self) -> Iterator[Slot]:
        """A slot that is cleaned at the end."""
        slot = self.pool.acquire(10.0)
        if not self.has_uid and os.getuid() == 0:
            os.chown(slot.scratch, SHARED_UID, SHARED_UID)
        try:
            yield slot
        finally:
            self.pool.release(slot)

    @contextmanager
    def running(self, slot: Slot, source: str, limits: Limits | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """A watched candidate that runs the source."""
        limits = limits or Limits()
        if self.has_uid:
            self.pool.watch(slot, limits)
        with process_of([self.boot(), self.confinement(slot, limits), source]) as process:
            if not self.has_uid:
                self.pool.watch(slot, limits, root_pid=process.pid)
            yield process

    @contextmanager
    def unconfined(self, slot: Slot, source: str, limits: Limits | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """A watched process that has the slot's uid and nothing else of the sandbox."""
        self.pool.watch(slot, limits or Limits())
        with process_of([UNCONFINED, str(slot.uid), source]) as process:
            yield process

    def run(self, source: str, limits: Limits | None = None) -> str:
        """Output of the source, run as a candidate that must end well."""
        with self.slot() as slot, self.running(slot, source, limits) as process:
            output, errors = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, (process.returncode, output, errors)
            return output.decode().strip()

    def confinement(self, slot: Slot, limits: Limits) -> str:
        """What `confine` is told, as JSON."""
        return CONFINEMENT.dump_json(
            Confinement(
                scratch=slot.scratch,
                log_fd=1,
                isolation=self.found,
                environment=environ.environment(slot.scratch, "cpu", cores=2),
                readable=roots.default_readable(),
                uid=slot.uid,
                gid=slot.gid,
                limits=limits,
            )
        ).decode()

    @staticmethod
    def boot() -> str:
        """Program that confines itself."""
        return BOOT.format(shared=SHARED_UID)


@contextmanager
def process_of(arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program, killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", *arguments],
        env=program.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()


def host_in(found: Isolation, directory: Path) -> Iterator[Host]:
    """A host with a warden and a pool of its own."""
    started = start_warden(1)
    client = WardenClient(started.sockets[0])
    pool = SlotPool(TEST_UIDS, 2, directory, not found.uid, client)
    yield Host(found, pool, client, found.uid)
    pool.close()
    started.close()
