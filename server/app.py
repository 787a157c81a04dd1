"""Composition root: settings, evaluator and environment put together as an ASGI application. Server side.

`uvicorn server.app:app` serves it, as do `kernel-env serve` and `python -m`. Importing this module reads the settings
and starts nothing; the evaluator starts with the web server and ends with it.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.types import ConcurrencyConfig
from prometheus_client import CONTENT_TYPE_LATEST

from kernel_env.models import KernelAction, KernelObservation

from .connections import ConnectionGuard
from .environment import KernelEnvironment
from .errors import EvaluatorError, InvalidRequest
from .events import STDOUT_FD
from .runtime import Build, Runtime, build_evaluator
from .settings import Settings

logger = logging.getLogger(__name__)

ENV_NAME = "kernel_env"

WS_PING_INTERVAL_S = 20.0
WS_PING_TIMEOUT_S = 120.0
"""A client may block its event loop while a model generates; a dead one still frees its session within 140 s."""

WS_MAX_BYTES = 8 * 1024 * 1024
"""The longest submission takes 3 MiB when every character of it is written as two JSON escapes."""

GRACEFUL_SHUTDOWN_S = 3
STOP_DEADLINE_S = 4.5
"""After SIGTERM the process is gone within 5 s, whatever a step thread does."""

EXIT_NOT_STARTED = 3
_BAD_REQUEST = 400
_UNAVAILABLE = 503


def make_app(settings: Settings, build: Build = build_evaluator, event_fd: int | None = STDOUT_FD) -> FastAPI:
    """The application for `settings`; nothing is started before the web server runs its lifespan."""
    runtime = Runtime(settings, build, event_fd)

    def environment() -> KernelEnvironment:
        return KernelEnvironment(runtime.services)

    app: FastAPI = create_app(
        environment,
        KernelAction,
        KernelObservation,
        env_name=ENV_NAME,
        concurrency_config=ConcurrencyConfig(
            max_concurrent_envs=settings.max_concurrent_envs, session_timeout=settings.session_timeout_s
        ),
    )
    app.add_middleware(ConnectionGuard, connections=runtime.connections)
    _run_with(app, runtime)
    _add_status_routes(app, runtime, settings.max_concurrent_envs)
    app.add_exception_handler(InvalidRequest, _refuse)
    return app


def server_config(application: FastAPI, host: str, port: int) -> uvicorn.Config:
    """How the web server is run."""
    return uvicorn.Config(
        application,
        host=host,
        port=port,
        workers=1,  # a second worker would be a second judge on the same device
        access_log=False,
        ws_ping_interval=WS_PING_INTERVAL_S,
        ws_ping_timeout=WS_PING_TIMEOUT_S,
        ws_max_size=WS_MAX_BYTES,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
    )


def main(host: str | None = None, port: int | None = None) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        host: Address to listen on; default: the variable HOST.
        port: Port to listen on; default: the variable PORT.
    """
    settings = Settings.from_environ(os.environ)
    config = server_config(app, settings.host if host is None else host, settings.port if port is None else port)
    server = uvicorn.Server(config)
    server.run()
    if not server.started:
        sys.exit(EXIT_NOT_STARTED)


def _run_with(app: FastAPI, runtime: Runtime) -> None:
    """Start and stop `runtime` with the application, around whatever lifespan OpenEnv gave it."""
    inner = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(scope_app: FastAPI) -> AsyncIterator[Any]:
        _quiet_uvicorn()
        with _stop_on_sigterm(runtime):
            try:
                await asyncio.to_thread(runtime.start)
                async with inner(scope_app) as state:
                    yield state
            finally:
                await asyncio.to_thread(runtime.close)

    app.router.lifespan_context = lifespan


@contextlib.contextmanager
def _stop_on_sigterm(runtime: Runtime) -> Iterator[None]:
    """On SIGTERM end the child processes at once, and this process before long.

    uvicorn first waits for running steps, without a limit by default, and only then tells the application. By then a
    container runtime has lost patience and killed this process, and a compiler may still be running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers; an embedded server is stopped by its owner
        return
    previous = signal.getsignal(signal.SIGTERM)

    def stop(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=_stop, args=(runtime,), name="stop", daemon=True).start()
        if callable(previous):
            previous(number, frame)

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _stop(runtime: Runtime) -> None:
    deadline = time.monotonic() + STOP_DEADLINE_S
    runtime.close()
    time.sleep(max(deadline - time.monotonic(), 0.0))
    # Still here: some thread does not end. Every child is gone, so nothing is left to wait for.
    os._exit(128 + signal.SIGTERM)


def _add_status_routes(app: FastAPI, runtime: Runtime, max_sessions: int) -> None:
    @app.get("/health/gpu", tags=["Health"])
    async def health_gpu() -> JSONResponse:
        """Devices, isolation and load of the evaluator; 503 while it is starting or stopping, or can judge nothing."""
        try:
            evaluation = runtime.services().evaluation
        except EvaluatorError as error:
            return JSONResponse({"status": "unavailable", "detail": str(error)}, status_code=_UNAVAILABLE)
        status = evaluation.status()
        now = {device.gpu_id: asdict(device) for device in status.devices}
        devices = [asdict(device) | now.get(device.gpu_id, {}) for device in evaluation.devices]
        body = {"status": "ok" if status.fault is None else "fault"} | asdict(status) | {"devices": devices}
        return JSONResponse(body, status_code=200 if status.fault is None else _UNAVAILABLE)

    @app.get("/metrics", tags=["Health"])
    async def metrics() -> Response:
        """Counters, times and load, for Prometheus."""
        return Response(runtime.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/capacity", tags=["Health"])
    async def capacity() -> JSONResponse:
        """Sessions in use and free."""
        active = min(len(runtime.connections), max_sessions)
        return JSONResponse(
            {"max_sessions": max_sessions, "active_sessions": active, "free_sessions": max_sessions - active}
        )


def _refuse(_request: Request, error: Exception) -> JSONResponse:
    """Answer of the HTTP routes, which hold no session; a WebSocket gets the text in an error frame."""
    return JSONResponse({"detail": str(error)}, status_code=_BAD_REQUEST)


def _quiet_uvicorn() -> None:
    """Drop a line per request and per connection.

    Launchers exist that read the server's output through a pipe and never drain it: it is full after 64 KiB, and the
    next line then stops the event loop for good.
    """
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or not (
        record.msg in {"connection open", "connection closed", "connection rejected"}
        or "WebSocket %s" in str(record.msg)
    )


app = make_app(Settings.from_environ(os.environ))

if __name__ == "__main__":
    main()
