"""What this host lets us do to a candidate, found by doing it. Trusted code; the attempts run in throw-away processes.

A program as well: `python -m <package>.isolation UID` prints the findings as JSON, so that a server with threads need
not fork itself.
"""

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter

from ..errors import EvaluatorError
from . import landlock_rules, program, reach, roots, syscall_filter
from .uids import Claims

PROBE_TIMEOUT_S = 30.0
"""Starting Python takes 0.1 s; a loaded host may take a hundred times that."""

MINIMUM_ABI = 1
GAPS = {
    2: "files cannot be moved between directories of the scratch directory (Landlock 2, Linux 5.19)",
    3: "truncation is denied by system call only (Landlock 3, Linux 6.2)",
    4: "TCP is denied by the system call filter only (Landlock 4, Linux 6.7)",
    5: "device ioctl is limited by file permissions only (Landlock 5, Linux 6.10)",
    6: "signals and abstract sockets are limited by uid and system call filter only (Landlock 6, Linux 6.12)",
}


class Level(StrEnum):
    """How well a candidate is confined."""

    STRONG = "strong"
    """Own uid, Landlock and the system call filter."""

    WEAK = "weak"
    """At least one of them is missing: run only code that you trust not to attack."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """Protections that this host gives."""

    uid: bool
    """A candidate can have a uid of its own, and Python can be read with it."""

    landlock_abi: int
    """Version of Landlock, 0 without."""

    seccomp: bool
    no_new_privs: bool
    missing: tuple[str, ...]
    """One sentence for each protection that is absent or partial."""

    @property
    def is_usable(self) -> bool:
        """Whether a candidate can run at all: never as root, which a server that is root without uids would have to."""
        return self.uid or os.getuid() != 0

    @property
    def level(self) -> Level:
        """Strong only with all of uid, Landlock, seccomp and no_new_privs."""
        whole = self.uid and self.seccomp and self.no_new_privs and self.landlock_abi >= MINIMUM_ABI
        return Level.STRONG if whole else Level.WEAK


UNUSABLE = "a submission never runs as root, and cannot get a user id of its own here: "


def available(uid: int) -> Isolation:
    """Try every protection in throw-away processes.

    Args:
        uid: First uid of the candidates' range; the attempts run under the first one that no other server has.
    Raises:
        EvaluatorError: The attempts themselves could not be run.
    """
    with ExitStack() as stack:
        if os.getuid() == 0 and uid > 0:
            # Another server's warden stops and kills whatever runs under its uids.
            (uid,) = stack.enter_context(Claims(uid, 1)).uids
        try:
            done = subprocess.run(
                program.command("isolation", str(uid)),
                env=program.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_TIMEOUT_S,
                check=True,
            )
            return _ISOLATION.validate_json(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise EvaluatorError("the host's isolation could not be determined") from error


def main() -> None:
    """Try, and print an `Isolation` as JSON."""
    sys.stdout.buffer.write(_ISOLATION.dump_json(_try_everything(int(sys.argv[1]))))


def _try_everything(uid: int) -> Isolation:
    """Each attempt in a child of its own: all of them are irrevocable."""
    missing: list[str] = []
    has_uid = _has_uid(uid, missing)
    abi = landlock_rules.abi_version()
    if abi < MINIMUM_ABI or not _succeeds(_try_landlock):
        missing.append(
            "Landlock is absent or refused by the container: files are limited by permissions only (needs Linux 5.13)"
        )
        abi = 0
    else:
        missing += [sentence for version, sentence in GAPS.items() if version > abi]
    seccomp = syscall_filter.is_available() and _succeeds(_try_seccomp)
    if not seccomp:
        missing.append("no system call filter: install libseccomp and pyseccomp, or allow seccomp in the container")
    no_new_privs = _succeeds(program.set_no_new_privs)
    if not no_new_privs:
        missing.append("no_new_privs is refused")
    return Isolation(uid=has_uid, landlock_abi=abi, seccomp=seccomp, no_new_privs=no_new_privs, missing=tuple(missing))


def _has_uid(uid: int, missing: list[str]) -> bool:
    """Whether a candidate can run under `uid`; appends the reason why not."""
    if os.getuid() != 0:
        missing.append("not root: candidates share the server's uid and can signal each other and the server")
        return False
    if not _succeeds(lambda: _try_uid(uid)):
        missing.append("root without SETUID and SETGID: candidates cannot have a uid of their own")
        return False
    if not _succeeds(lambda: _try_python(uid)):
        missing.append("Python is installed where other users cannot read it: install it outside of root's home")
        return False
    return True


def _succeeds(attempt: Callable[[], None]) -> bool:
    """Whether the attempt ends without an exception, in a forked child."""
    pid = os.fork()
    if pid == 0:
        try:
            attempt()
            status = 0
        except BaseException:  # noqa: BLE001 every failure means that the protection is not there
            status = 1
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _try_uid(uid: int) -> None:
    """Become the uid for good."""
    program.become(uid, uid)


def _try_python(uid: int) -> None:
    """Start the interpreter under the uid, after whatever makes it reachable."""
    reach.make_reachable(roots.default_readable())
    program.become(uid, uid)
    subprocess.run([sys.executable, "-I", "-c", "import json"], check=True, stderr=subprocess.DEVNULL)


def _try_landlock() -> None:
    """A file outside must be refused, one inside must not."""
    with tempfile.TemporaryDirectory() as inside, tempfile.NamedTemporaryFile() as outside:
        if not _succeeds(lambda: _try_rules(inside, outside.name)):
            raise EvaluatorError("Landlock did not do what it should")


def _try_rules(inside: str, outside: str) -> None:
    """Apply rules and test them; in a child of its own, since the files could not be removed from in here."""
    landlock_rules.FileRules(inside, ("/proc",), (), ()).enforce()
    os.close(os.open(os.path.join(inside, "file"), os.O_WRONLY | os.O_CREAT))
    try:
        os.open(outside, os.O_RDONLY)
    except PermissionError:
        return
    raise EvaluatorError("Landlock did not refuse")


def _try_seccomp() -> None:
    """A denied call must fail with EPERM."""
    syscall_filter.load()
    try:
        os.setsid()
    except PermissionError as error:
        if error.errno == errno.EPERM:
            return
    raise EvaluatorError("the filter did not refuse")


_ISOLATION = TypeAdapter(Isolation)

if __name__ == "__main__":
    main()
