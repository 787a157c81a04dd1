"""Runs a program to its end: with a deadline, and killed with whatever it started if it misses it. Trusted side."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    status: int
    """Exit code; minus the signal's number if one ended it."""

    output: bytes
    complaints: bytes
    """What it wrote to standard error."""


def run_to_end(
    command: Sequence[str], environment: Mapping[str, str], *, timeout_s: float, stdin: bytes = b"", cwd: str = "/"
) -> Ended | None:
    """Run `command` in a session of its own; None if it had to be killed at the deadline.

    Raises:
        OSError: It cannot be started.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=cwd,
        start_new_session=True,
    ) as child:
        try:
            output, complaints = child.communicate(stdin, timeout=max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Not reaped yet, so its number still is its own.
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)
    return Ended(child.returncode, output, complaints)
