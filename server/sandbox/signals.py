"""Acts on a candidate with the candidate's own uid. Trusted code, part of the warden.

`kill(-1)` under the candidate's uid reaches all of its processes atomically: one that forks meanwhile handles the
signal first. The warden takes the uid for just that call, in a form that leaves it out of the candidate's own reach:
the effective uid is the candidate's, the saved one stays root's, the real one is a spare that nobody else has.
"""

import contextlib
import os
from collections.abc import Iterator

from .process_table import ProcessTable, Target


@contextlib.contextmanager
def assumed(uid: int, spare_uid: int | None) -> Iterator[None]:
    """Have the candidate's effective uid and gid inside. Single-threaded processes only: the ids are the process's.

    Args:
        spare_uid: A uid without processes, reserved by the pool of slots.
    Raises:
        ValueError: One of the uids is root's, or both are equal.
    """
    if spare_uid is None or uid <= 0 or spare_uid <= 0 or spare_uid == uid:
        raise ValueError("a candidate's uid and a spare one are needed, and neither may be root's")
    os.setresgid(0, uid, 0)  # a slot's gid is the same number
    os.setresuid(spare_uid, uid, 0)
    try:
        if os.getresuid() != (spare_uid, uid, 0):
            raise PermissionError("the uid did not change")
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


def send(table: ProcessTable, target: Target, spare_uid: int | None, signal: int) -> None:
    """Signal all processes of the target. In weak mode one that is born meanwhile may be missed: send again."""
    if target.uid is None:
        for pid in table.pids(target):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal)
        return
    with assumed(target.uid, spare_uid), contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal)
