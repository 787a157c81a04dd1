"""Programs that are run to their end."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server.tasks.children import run_to_end


def python(code: str, *, timeout_s: float = 30.0, stdin: bytes = b"") -> object:
    ended = run_to_end([sys.executable, "-c", code], dict(os.environ), timeout_s=timeout_s, stdin=stdin)
    return None if ended is None else (ended.status, ended.output, ended.complaints)


def test_status_and_both_outputs_are_returned() -> None:
    code = "import sys; sys.stderr.write('no'); print(sys.stdin.read()); sys.exit(3)"
    assert python(code, stdin=b"yes") == (3, b"yes\n", b"no")


def test_status_of_a_signal_is_negative() -> None:
    assert python("import os; os.kill(os.getpid(), 9)") == (-9, b"", b"")


def test_whatever_it_started_is_killed_with_it_at_the_deadline() -> None:
    mark = f"kernel-env-test-{os.getpid()}"
    code = f"import os, subprocess; os.environ['MARK'] = '{mark}'; subprocess.run(['sleep', '97'])"
    begin = time.monotonic()
    assert python(code, timeout_s=2.0) is None
    assert time.monotonic() - begin < 20.0
    while _marked(mark) and time.monotonic() - begin < 20.0:
        time.sleep(0.05)  # a killed process takes a moment to be gone
    assert _marked(mark) == []


def _marked(mark: str) -> list[str]:
    """Processes with that variable in their environment."""
    environments = [f"{path}/environ" for path in Path("/proc").iterdir() if path.name.isdigit()]
    found = subprocess.run(["grep", "-alz", f"^MARK={mark}$", *environments], capture_output=True, check=False)
    return found.stdout.decode().split()


def test_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        run_to_end(["/no/such/program"], {}, timeout_s=1.0)
