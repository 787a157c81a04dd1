"""User ids of candidates, each claimed by one server of this host at a time. Trusted code.

The warden stops and kills by uid, so nothing of ours may run under a uid that another server has claimed, not even to
find out what the host allows.
"""

import errno
import socket
from types import TracebackType
from typing import Self

from ..errors import EvaluatorError
from .process_table import ProcessTable, Target

SEARCHED_UIDS = 4096
"""How far from the first uid the uids of other servers are skipped."""


class Claims:
    """Uids that no other server on this host uses and under which nothing runs.

    A claim is an abstract socket's name: it vanishes with the process that holds it, however that ends.
    """

    def __init__(self, first: int, count: int) -> None:
        """Claim `count` uids, from `first` on.

        Raises:
            EvaluatorError: So many are not free, or claims cannot be made.
        """
        self.uids: list[int] = []
        self._sockets: list[socket.socket] = []
        table = ProcessTable()
        try:
            for uid in range(first, first + SEARCHED_UIDS):
                if len(self.uids) == count:
                    break
                self._try(uid, table)
            if len(self.uids) < count:
                raise EvaluatorError(f"expected {count} free uids from {first} on, got {len(self.uids)}")
        except BaseException:
            self.close()
            raise

    def _try(self, uid: int, table: ProcessTable) -> None:
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0kernel-env-uid-{uid}")
        except OSError as error:
            claim.close()
            if error.errno != errno.EADDRINUSE:
                raise EvaluatorError("uids cannot be claimed") from error
            return
        if table.pids(Target(uid=uid)):
            claim.close()
            return
        self._sockets.append(claim)
        self.uids.append(uid)

    def close(self) -> None:
        """Give them back. Safe to call twice."""
        while self._sockets:
            self._sockets.pop().close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give them back."""
        self.close()
