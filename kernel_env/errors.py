"""Exceptions of the client: what can go wrong between a caller and a server, by what the caller should do next.

    ClientError
      ServerFull      no session free: wait, or use another server
      SessionLost     the episode is gone: call `reset()`
      ReplyTimeout    no reply in time, the episode is gone: call `reset()`
      ServerError     the server refused or failed the request: read the text; the episode lives on

A submission's fault is never an exception; it is a `Verdict` on the observation.
"""


class ClientError(Exception):
    """Base of every exception the client raises on purpose."""


class ServerFull(ClientError, ConnectionError):
    """Every session of the server is taken. Nothing was started; trying again later is safe."""


class SessionLost(ClientError, ConnectionError):
    """The server no longer holds this episode, or its replies can no longer be trusted to be ours.

    The client never carries on silently in a session that was not reset. A later `reset()` connects again.
    """


class ReplyTimeout(ClientError, TimeoutError):
    """No reply within `message_timeout_s`. The socket was dropped, because a late reply would answer the next call."""


class ServerError(ClientError, RuntimeError):
    """The server answered with an error; the text says what to change.

    Attributes:
        code: OpenEnv's error code, for instance `EXECUTION_ERROR` or `VALIDATION_ERROR`.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code
