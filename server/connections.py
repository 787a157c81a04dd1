"""Which WebSocket connections are open, and a guard for what comes in over them. Server side, around OpenEnv's app.

OpenEnv 0.3.0 reads nothing while a step runs, so a client that went away is noticed only when its evaluation, and all
those queued before it, are done. It also ends a session over a frame that is not an object, and repeats a refused
submission in full. This guard reads ahead, answers such frames itself, and shortens the refusals.

Covered: `/ws`. Not covered: the HTTP routes, which hold no session, and OpenEnv's web page.
"""

import asyncio
import json
import logging
import re
import threading
import uuid
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

logger = logging.getLogger(__name__)

CONNECTION_OPTION = "_connection"
"""Option of `reset()` through which a session learns its connection. Set here, whatever the client sent."""

READ_AHEAD = 8
"""Frames read ahead of the session. A client sends one at a time; one that floods us is left to TCP."""

_PATH = "/ws"
_DISCONNECT = "websocket.disconnect"
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89abAB]")
_LOW_SURROGATE_ESCAPE = re.compile(r"\\u[dD][c-fC-F]")
_MAX_ERRORS_SHOWN = 5


class Connections:
    """Open connections by name."""

    def __init__(self) -> None:
        self._gone: dict[str, threading.Event] = {}

    def __len__(self) -> int:
        return len(self._gone)

    def is_gone(self, name: str | None) -> bool:
        """Whether the client of connection `name` has left. A session without a connection is never abandoned."""
        if name is None:
            return False
        gone = self._gone.get(name)
        return gone is None or gone.is_set()

    def open(self) -> str:
        """Name of a new connection."""
        name = uuid.uuid4().hex
        self._gone[name] = threading.Event()
        return name

    def leave(self, name: str) -> None:
        """The client left; its session may still be at work."""
        self._gone[name].set()

    def close(self, name: str) -> None:
        """The session ended."""
        del self._gone[name]


class ConnectionGuard:
    """ASGI middleware; see the module's text."""

    def __init__(self, app: ASGIApp, connections: Connections) -> None:
        self._app = app
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        try:
            if scope["path"] == _PATH:
                await self._guard(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        except WebSocketDisconnect:
            # OpenEnv closes a socket whose client has left, which raises. uvicorn would log 3 KB each time.
            logger.debug("websocket_left path=%s", scope["path"])

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self._connections.open()
        frames: asyncio.Queue[Message] = asyncio.Queue(READ_AHEAD)

        async def read_ahead() -> None:
            message: Message = {"type": ""}
            while message["type"] != _DISCONNECT:
                try:
                    message = await receive()
                except RuntimeError:
                    message = {"type": _DISCONNECT, "code": 1006}  # the server closed the socket itself
                if message["type"] == _DISCONNECT:
                    self._connections.leave(name)
                await frames.put(message)

        async def checked_receive() -> Message:
            while True:
                message = await frames.get()
                if message["type"] != "websocket.receive":
                    return message
                try:
                    return {"type": "websocket.receive", "text": _checked(message, name)}
                except ValueError as error:
                    await send({"type": "websocket.send", "text": _error_frame("INVALID_JSON", str(error))})

        async def readable_send(message: Message) -> None:
            text = message.get("text")
            if message["type"] == "websocket.send" and isinstance(text, str) and text.startswith('{"type":"error"'):
                message = {**message, "text": _readable_error(text)}
            await send(message)

        reader = asyncio.create_task(read_ahead())
        try:
            await self._app(scope, checked_receive, readable_send)
        finally:
            reader.cancel()
            self._connections.close(name)


def _checked(message: Message, connection: str) -> str:
    """Text of a frame that OpenEnv can handle, with the connection's name in every reset.

    Raises:
        ValueError: It cannot; the text says what to send instead.
    """
    text = message.get("text")
    if not isinstance(text, str):
        raise ValueError("expected a text frame with a JSON object, got a binary frame")
    try:
        frame = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"Invalid JSON: {error}") from None
    if not isinstance(frame, dict):
        raise ValueError(f"expected a JSON object with a type, got {type(frame).__name__}")
    if _SURROGATE_ESCAPE.search(text) or _LOW_SURROGATE_ESCAPE.search(text):
        _require_unicode(frame)
    if frame.get("type") == "reset" and isinstance(frame.get("data", {}), dict):
        frame["data"] = {**frame.get("data", {}), CONNECTION_OPTION: connection}
        return json.dumps(frame)
    return text


def _require_unicode(frame: dict[str, Any]) -> None:
    try:
        json.dumps(frame, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        raise ValueError(
            f"the text holds a lone surrogate (\\u{ord(character):04x}), which is no character: "
            "decode the model's output with errors='replace'"
        ) from None


def _error_frame(code: str, message: str) -> str:
    return json.dumps({"type": "error", "data": {"message": message, "code": code}})


def _readable_error(text: str) -> str:
    """The same frame with pydantic's findings in its message and without a copy of what was sent."""
    frame = json.loads(text)
    data = frame.get("data")
    if not isinstance(data, dict) or not isinstance(data.get("errors"), list):
        return text
    findings = [
        f"{'.'.join(str(part) for part in finding.get('loc', ())) or 'message'}: {finding.get('msg', '')}"
        for finding in data["errors"][:_MAX_ERRORS_SHOWN]
    ]
    return _error_frame(str(data.get("code", "VALIDATION_ERROR")), f"{data.get('message', '')}: {'; '.join(findings)}")
