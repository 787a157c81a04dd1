#!/usr/bin/env python3
"""Run a command against a server of its own: start, wait for /health, run, stop.

    with_server.py [--serve "COMMAND {port}"] [--wait-s N] -- COMMAND ARG...

`{port}` in either command and `{url}` in the second are replaced. The server listens on a free loopback port, its
output goes to a file that is printed when something fails, and it is stopped by process id whatever happens: SIGTERM,
then SIGKILL. The exit status is the command's; 3 if the server did not come up.
"""

import argparse
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

SERVER_FAILED = 3
STOP_GRACE_S = 15.0
"""The server ends within 5 s of SIGTERM; the rest is for a loaded machine."""

LOG_TAIL_CHARS = 8000


def main(argv: list[str]) -> int:
    """Exit status of the command, or `SERVER_FAILED`."""
    options, command = _parse(argv)
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    serve = [word.replace("{port}", str(port)) for word in shlex.split(options.serve)]
    client = [word.replace("{port}", str(port)).replace("{url}", url) for word in command]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # unwinds through the finally below
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        server = subprocess.Popen(serve, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        status = SERVER_FAILED
        try:
            if _wait_healthy(server, url, options.wait_s):
                status = subprocess.run(client, check=False).returncode
        finally:
            _stop(server)
            if status != 0:
                _print_tail(log)
    return status


def _parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our options, and the command after `--`."""
    own, separator, command = argv, "", []
    if "--" in argv:
        at = argv.index("--")
        own, separator, command = argv[:at], "--", argv[at + 1 :]
    parser = argparse.ArgumentParser(description="Run a command against a server of its own.")
    default_serve = f"{Path(sys.executable).with_name('kernel-env')} serve --host 127.0.0.1 --port {{port}}"
    parser.add_argument("--serve", default=default_serve, help="command that starts the server")
    parser.add_argument("--wait-s", type=float, default=180.0, help="seconds the server may take to answer /health")
    options = parser.parse_args(own)
    if not separator or not command:
        parser.error("expected: -- COMMAND ARG...")
    return options, command


def _free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_healthy(server: subprocess.Popen[bytes], url: str, wait_s: float) -> bool:
    """True once /health answers 200; False, with the reason on stderr, if the server ends or takes too long."""
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        if server.poll() is not None:
            print(f"with_server: the server ended with status {server.returncode}", file=sys.stderr)
            return False
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:  # noqa: S310 - a loopback URL made here
                if reply.status == 200:
                    return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    print(f"with_server: no answer from {url}/health within {wait_s:g} s", file=sys.stderr)
    return False


def _stop(server: subprocess.Popen[bytes]) -> None:
    """The server's process is gone afterwards."""
    if server.poll() is not None:
        return
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        print(f"with_server: still there {STOP_GRACE_S:g} s after SIGTERM, killing it", file=sys.stderr)
        server.kill()
        server.wait()


def _print_tail(log: IO[str]) -> None:
    """End of the server's output, on stderr."""
    log.seek(0)
    print("--- end of the server's output ---", file=sys.stderr)
    print(log.read()[-LOG_TAIL_CHARS:], file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
