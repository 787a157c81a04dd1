"""The judge's side of the conversation with one candidate: commands, deadlines, stopping and continuing.

Trusted. Whatever the other side does ends in a packet or in a `Stop`, which carries a verdict; nothing it sends can
make this module raise anything else.
"""

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

from kernel_env.terms import Stage, Verdict

from ..protocol import (
    GO,
    Called,
    Channel,
    ChannelClosed,
    Deadline,
    DeadlineExceeded,
    Failure,
    MalformedReply,
    Packet,
    Reply,
    decode,
    encode_command,
)
from ..verdicts import NOT_ITS_CHANNEL, verdict_of

MESSAGE_TIMEOUT_S = 10.0
"""For commands that run no code of the submission."""


class Stop(Exception):
    """The evaluation ends with a verdict. Caught in one place, `evaluation.evaluate`."""

    def __init__(
        self,
        verdict: Verdict,
        stage: Stage,
        text: str,
        max_abs_err: float | None = None,
        failure: Failure | None = None,
    ) -> None:
        """Keep what the result needs; `failure` is what the candidate claims as the reason."""
        super().__init__(text)
        self.verdict, self.stage, self.text, self.max_abs_err = verdict, stage, text, max_abs_err
        self.failure = failure


class NotCapturable(Exception):
    """The calls cannot be captured in CUDA graphs. No fault, but the process is not to be used any further.

    torch cannot leave a capture that failed cleanly: its allocator stays in capture mode, and it may abort the process
    when the graph is collected. A fresh process times the same module from a loop.
    """


class CandidateGone(Exception):
    """The candidate's process ended; the evaluator knows from its parent how."""

    def __init__(self, stage: Stage) -> None:
        """Keep the stage it ended in."""
        super().__init__(f"candidate ended in {stage}")
        self.stage = stage


class Peer:
    """One candidate."""

    def __init__(self, channel: Channel, pidfd: int, freeze: Callable[[], bool], kill: Callable[[], bool]) -> None:
        """Talk over `channel`.

        Args:
            pidfd: The candidate's main process.
            freeze: Stops every process of the candidate and says whether all are stopped.
            kill: Ends every process of the candidate and says whether none is left.
        """
        self._channel, self._pidfd, self._freeze, self._kill = channel, pidfd, freeze, kill
        self.stage = Stage.COMPILE

    def command(
        self, op: str, reply: Reply, timeout_s: float = MESSAGE_TIMEOUT_S, fds: Sequence[int] = (), **fields: object
    ) -> Packet:
        """Send a command and return its reply.

        Raises:
            Stop: It failed, took too long, or the reply makes no sense.
            CandidateGone: The process ended.
        """
        self.send(encode_command(op, **fields), fds)
        return self.receive(reply, timeout_s)

    def send(self, packet: bytes, fds: Sequence[int] = ()) -> None:
        """Send without waiting for a reply."""
        try:
            self._channel.send(packet, fds, timeout_s=MESSAGE_TIMEOUT_S)
        except ChannelClosed:
            raise CandidateGone(self.stage) from None
        except DeadlineExceeded:
            raise Stop(Verdict.TIMEOUT, self.stage, "the process does not answer") from None

    def receive(self, expected: Reply, timeout_s: float) -> Packet:
        """Next reply, which must be of the kind `expected`."""
        try:
            packet = decode(self._channel.receive(timeout_s))
        except ChannelClosed:
            raise CandidateGone(self.stage) from None
        except DeadlineExceeded:
            raise Stop(Verdict.TIMEOUT, self.stage, f"no result within {timeout_s:.0f} s") from None
        except MalformedReply:
            raise Stop(Verdict.RUNTIME_ERROR, self.stage, NOT_ITS_CHANNEL) from None
        if packet.kind is Reply.FAILED:
            raise self.stop_for(packet)
        if packet.kind is not expected:
            raise Stop(Verdict.RUNTIME_ERROR, self.stage, NOT_ITS_CHANNEL)
        return packet

    def stop_for(self, packet: Packet) -> Stop:
        """Verdict for a failure the candidate reports."""
        return Stop(verdict_of(packet.failure, self.stage), self.stage, packet.text, failure=packet.failure)

    def go(self, plan: int, token: int) -> None:
        """Let the main process continue and run `plan`. Helpers it may have stay stopped."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGCONT)
        self.send(GO.pack(b"R", plan, token))

    def describe(self) -> list[Called]:
        """Outputs of the last run."""
        count = self.command("describe", Reply.PREPARED).prepared
        if count > MAX_CALLS:
            raise Stop(Verdict.RUNTIME_ERROR, self.stage, NOT_ITS_CHANNEL)
        calls = []
        deadline = Deadline(MESSAGE_TIMEOUT_S)  # of all of them: one each would add up to hours
        for _ in range(count):
            if deadline.is_over:
                raise Stop(Verdict.TIMEOUT, self.stage, "the process does not answer")
            called = self.receive(Reply.CALLED, MESSAGE_TIMEOUT_S).called
            assert called is not None
            calls.append(called)
        return calls

    def resume(self) -> None:
        """Let the main process continue without a run."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGCONT)

    def freeze(self) -> None:
        """Stop every process of the candidate.

        Raises:
            Stop: One of them goes on all the same.
        """
        if not self._freeze():
            raise Stop(Verdict.TIMING_REJECTED, self.stage, "its processes could not be stopped")

    def end(self) -> None:
        """End every process of the candidate. Safe to call twice."""
        self._kill()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        self._channel.close()


MAX_CALLS = 4096
"""Calls one repetition may have."""
