"""Messages between the warden and the trusted processes that ask it to act. Values only; JSON, one packet each."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter

from .limits import Limits
from .process_table import Target

PACKET_BYTES = 65536
"""Largest packet: a census of a hundred slots is about 20 kB."""


class Op(StrEnum):
    """What a client asks for."""

    WATCH = "watch"
    UNWATCH = "unwatch"
    FREEZE = "freeze"
    THAW = "thaw"
    KILL = "kill"
    CENSUS = "census"


class KillReason(StrEnum):
    """Which limit a candidate exceeded."""

    MEMORY = "memory"
    SCRATCH = "scratch"
    LOG = "log"
    PROCESSES = "processes"


@dataclass(frozen=True, slots=True)
class Watch:
    """A candidate to look after, under the number of its slot."""

    slot: int
    scratch: str
    log: str
    limits: Limits
    uid: int | None = None
    spare_uid: int | None = None
    """Goes with `uid`."""

    root_pid: int | None = None
    """Instead of `uid`, in weak mode."""

    shared_bytes: int = 0
    """Shared memory of the judge that the candidate maps, which is not the candidate's use."""

    def __post_init__(self) -> None:
        """Refuse what could reach other processes.

        Raises:
            ValueError: Not a target, or a uid without a spare one.
        """
        Target(uid=self.uid, root_pid=self.root_pid)
        if self.uid is not None and (self.spare_uid is None or self.spare_uid <= 0 or self.spare_uid == self.uid):
            raise ValueError("a uid needs a spare uid that is not root's nor its own")

    @property
    def target(self) -> Target:
        """Whom to watch."""
        return Target(uid=self.uid, root_pid=self.root_pid)


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `watch` goes with the operation of that name, the rest with the others."""

    number: int
    op: Op
    slots: tuple[int, ...] = ()
    deadline_s: float = 0.0
    watch: Watch | None = None

    def encode(self) -> bytes:
        """As one packet."""
        return _REQUEST.dump_json(self)


@dataclass(frozen=True, slots=True)
class SlotCensus:
    """State of one watched slot."""

    slot: int
    processes: int
    tasks: int
    zombies: int
    """Processes that have ended and whose parent has still to collect them. Not among the others."""

    memory_bytes: int
    scratch_bytes: int
    scratch_inodes: int
    log_bytes: int
    killed: KillReason | None
    """Why the warden ended the candidate, if it did."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer to the request of that number."""

    number: int
    ok: bool
    error: str = ""
    unsettled: tuple[int, ...] = ()
    """Slots in which a task still ran, or still existed, at the deadline."""

    killed: tuple[tuple[int, KillReason], ...] = ()
    """Slots of the request that the warden had ended, and why."""

    census: tuple[SlotCensus, ...] = ()

    def encode(self) -> bytes:
        """As one packet."""
        return _REPLY.dump_json(self)


def decode_request(packet: bytes) -> Request:
    """Request in a packet.

    Raises:
        ValueError: Not a request.
    """
    return _REQUEST.validate_json(packet)


def decode_reply(packet: bytes) -> Reply:
    """Reply in a packet.

    Raises:
        ValueError: Not a reply.
    """
    return _REPLY.validate_json(packet)


_REQUEST = TypeAdapter(Request)
_REPLY = TypeAdapter(Reply)
