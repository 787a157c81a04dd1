"""One session over one WebSocket: decides when a reply can still be trusted to answer this call. Client side.

The server keeps an episode for as long as the socket lives, so everything here turns on one rule: a reply is returned
only if it answers this very call on the socket that was reset. OpenEnv 0.3.0 itself breaks it after a timeout, when the
late reply is read as the answer to the next call, and it keeps a closed socket for ever.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any, Self
from urllib.parse import urlsplit

from openenv.core.containers.runtime import ContainerProvider, RuntimeProvider
from openenv.core.env_client import EnvClient
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as ws_connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, WebSocketException
from websockets.protocol import State

from kernel_env.errors import ClientError, ReplyTimeout, ServerError, ServerFull, SessionLost
from kernel_env.models import KernelAction, KernelObservation, KernelState

MESSAGE_TIMEOUT_S = 900.0
"""Queue plus evaluation. One `nvcc` run with torch's headers is over a minute, and 64 sessions may be waiting."""

PING_INTERVAL_S = 20.0
PING_TIMEOUT_S = 120.0
"""Long, because a trainer may block its event loop for a minute while its model generates."""

CLOSE_TIMEOUT_S = 5.0
LAST_FRAME_TIMEOUT_S = 1.0
_CAPACITY_REACHED = "CAPACITY_REACHED"
_SESSION_ENDING_CODES = frozenset({"SESSION_ERROR", "FACTORY_ERROR"})
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class SessionClient(EnvClient[KernelAction, KernelObservation, KernelState]):
    """Connection of a client: opens, drops and guards the socket. What travels over it is the subclass's business.

    Args:
        base_url: `http://`, `https://`, `ws://` or `wss://` address of the server.
        message_timeout_s: Longest wait for one reply, queueing included.
        ping_interval_s: Seconds between keep-alive pings; None sends none.
        ping_timeout_s: Seconds without an answer to a ping after which the connection counts as dead; None: never.
    """

    def __init__(
        self,
        base_url: str,
        connect_timeout_s: float = 10.0,
        message_timeout_s: float = MESSAGE_TIMEOUT_S,
        max_message_size_mb: float = 100.0,
        provider: ContainerProvider | RuntimeProvider | None = None,
        mode: str | None = None,
        *,
        ping_interval_s: float | None = PING_INTERVAL_S,
        ping_timeout_s: float | None = PING_TIMEOUT_S,
    ) -> None:
        super().__init__(base_url, connect_timeout_s, message_timeout_s, max_message_size_mb, provider, mode)
        self._ping_interval_s = ping_interval_s
        self._ping_timeout_s = ping_timeout_s
        self._socket_loop: asyncio.AbstractEventLoop | None = None
        self._has_answered = False  # whether this socket ever carried a reply
        self._is_busy = False
        self._episode_id: str | None = None
        self._loss: str | None = None  # why the episode is gone

    async def connect(self) -> Self:
        """Open the socket, unless one is open in this event loop.

        Raises:
            ConnectionError: Nobody answers at the address.
        """
        if self._is_connected():
            return self
        self._drop_socket()
        try:
            self._ws = await ws_connect(
                self._ws_url,
                open_timeout=self._connect_timeout,
                max_size=self._max_message_size,
                ping_interval=self._ping_interval_s,
                ping_timeout=self._ping_timeout_s,
                # A proxy from the environment cannot reach this machine's own addresses.
                proxy=None if urlsplit(self._ws_url).hostname in _LOCAL_HOSTS else True,
            )
        except (OSError, WebSocketException) as error:
            raise ConnectionError(f"cannot connect to {self._ws_url}: {error}") from error
        self._socket_loop = asyncio.get_running_loop()
        self._has_answered = False
        return self

    async def disconnect(self) -> None:
        """Close the socket, which ends the session on the server."""
        if self._is_connected() and self._ws is not None:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._ws.send(json.dumps({"type": "close"}))
                    await self._ws.close()
            except (OSError, TimeoutError, WebSocketException):
                pass  # the far end is gone already, which is what was wanted
        self._lose_session("the client was disconnected")

    def _is_connected(self) -> bool:
        """Whether a socket is open and belongs to the running loop; one of a finished loop would wait for ever."""
        if self._ws is None or self._socket_loop is not asyncio.get_running_loop():
            return False
        return self._ws.state is State.OPEN

    def _drop_socket(self) -> None:
        connection, self._ws = self._ws, None
        if connection is None or self._socket_loop is None:
            return
        # Aborted, not closed: a closing handshake would wait for the very reply that is overdue.
        if not self._socket_loop.is_closed():
            self._socket_loop.call_soon_threadsafe(connection.transport.abort)
            return
        with contextlib.suppress(OSError):
            connection.transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def _lose_session(self, reason: str) -> None:
        self._drop_socket()
        if self._episode_id is not None and self._loss is None:
            self._loss = reason

    def _foreign_reply(self, expected: str | None, got: str | None) -> SessionLost:
        self._lose_session("a reply belonged to another episode")
        return SessionLost(f"the reply belongs to episode {got!r}, expected {expected!r}; call reset()")

    def _require_own(self, episode_id: str | None) -> None:
        if self._episode_id is not None and episode_id != self._episode_id:
            raise self._foreign_reply(self._episode_id, episode_id)

    @contextlib.asynccontextmanager
    async def _one_caller(self) -> AsyncIterator[None]:
        """Refuse a second call beside a first: both would be answered from one session."""
        if self._is_busy:
            raise ClientError("this client is in use: one client drives one session; make one client per episode")
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    async def _send_and_receive(self, message: dict[str, Any]) -> dict[str, Any]:
        """The server's reply to `message`; every call of the client goes through here."""
        async with self._one_caller():
            if self._episode_id is not None and not self._is_connected():
                self._lose_session("the connection was closed, or belongs to an event loop that has ended")
            if self._loss is not None:
                if message["type"] != "reset":
                    raise SessionLost(f"the episode is gone: {self._loss}; call reset()")
                self._loss = self._episode_id = None
            await self.connect()
            return await self._exchange(message)

    async def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        connection = self._ws
        assert connection is not None
        try:
            async with asyncio.timeout(self._message_timeout):
                await connection.send(json.dumps(message))
                reply = json.loads(await connection.recv())
        except TimeoutError as error:
            self._lose_session(f"no reply came within {self._message_timeout:g} s")
            raise ReplyTimeout(f"no reply within {self._message_timeout:g} s; the session was dropped") from error
        except asyncio.CancelledError:
            self._lose_session("a call was cancelled before its reply came")
            raise
        except ConnectionClosed as error:
            raise await self._closed(connection, error) from error
        self._has_answered = True
        if reply.get("type") == "error":
            raise self._refused(reply.get("data") or {})
        return dict(reply)

    async def _closed(self, connection: ClientConnection, error: ConnectionClosed) -> ClientError:
        """What a closed connection means. A full server says so in a last frame, or only closes cleanly."""
        last: dict[str, Any] = {}
        try:
            async with asyncio.timeout(LAST_FRAME_TIMEOUT_S):
                last = json.loads(await connection.recv())
        except (ConnectionClosed, TimeoutError, ValueError):
            pass  # no frame was waiting
        if last.get("type") == "error":
            refusal = self._refused(last.get("data") or {})
            self._lose_session("the server ended the session")
            return refusal
        self._lose_session("the server closed the connection")
        if isinstance(error, ConnectionClosedOK) and not self._has_answered:
            return ServerFull("the server closed the new connection at once: every session is taken")
        return SessionLost(f"the server closed the connection ({error}); call reset()")

    def _refused(self, data: dict[str, Any]) -> ServerFull | ServerError:
        """Exception for an error frame."""
        code, message = str(data.get("code", "UNKNOWN")), str(data.get("message", "no message"))
        if code == _CAPACITY_REACHED:
            self._lose_session("the server is full")
            return ServerFull(message)
        if code in _SESSION_ENDING_CODES:
            self._lose_session(f"the server ended the session: {message}")
        return ServerError(message, code)
