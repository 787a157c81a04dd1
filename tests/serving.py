"""A real web server in a thread of the test, with an evaluator from a script behind it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from server.app import make_app, server_config
from server.evaluator.interface import Evaluation
from server.settings import Settings


@contextmanager
def serving(evaluator: Evaluation, settings: Settings | None = None) -> Iterator[str]:
    """Base URL of a server on a free port of 127.0.0.1; stopped at the end."""
    app = make_app(settings or Settings(), build=lambda _: evaluator, event_fd=None)
    server = uvicorn.Server(server_config(app, "127.0.0.1", 0))
    thread = threading.Thread(target=server.run, name="test-server")
    thread.start()
    try:
        deadline = time.monotonic() + 20.0
        while not server.started:
            assert thread.is_alive(), "the server ended while it was starting"
            assert time.monotonic() < deadline, "the server did not start in time"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20.0)
        assert not thread.is_alive(), "the server did not stop"
