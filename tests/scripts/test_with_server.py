"""`scripts/with_server.py`: the server it starts is up before the command and gone after it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "with_server.py"

HEALTHY = """
import http.server, os, pathlib, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
pathlib.Path(sys.argv[2]).write_text(str(os.getpid()))
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def _run(serve: str, *command: str, wait_s: float = 20.0) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(SCRIPT), "--serve", serve, "--wait-s", str(wait_s), "--", *command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def _healthy_server(folder: Path) -> tuple[str, Path]:
    """Command of a small server that answers everything with 200, and the file that will hold its process id."""
    program, pid_file = folder / "healthy.py", folder / "pid"
    program.write_text(HEALTHY)
    return f"{sys.executable} {program} {{port}} {pid_file}", pid_file


@pytest.mark.parametrize("status", [0, 7])
def test_exit_status_is_the_commands_and_the_server_is_gone(tmp_path: Path, status: int) -> None:
    serve, pid_file = _healthy_server(tmp_path)

    done = _run(serve, sys.executable, "-c", f"raise SystemExit({status})")

    assert done.returncode == status
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_command_gets_the_url_of_a_healthy_server(tmp_path: Path) -> None:
    serve, _ = _healthy_server(tmp_path)
    ask = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1] + '/health').status)"

    done = _run(serve, sys.executable, "-c", ask, "{url}")

    assert (done.returncode, done.stdout.strip()) == (0, "200")


def test_server_that_dies_is_reported_with_its_output() -> None:
    done = _run(f"{sys.executable} -c \"raise SystemExit('no device')\"", "true")

    assert done.returncode == 3
    assert "ended with status 1" in done.stderr
    assert "no device" in done.stderr


def test_server_that_never_answers_is_given_up_and_stopped() -> None:
    done = _run(f'{sys.executable} -c "import time; time.sleep(600)"', "true", wait_s=1)

    assert done.returncode == 3
    assert "within 1 s" in done.stderr
