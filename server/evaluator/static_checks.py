"""The static stage: what can be said of a submission without running it. Trusted side; a child does the parsing.

Rejects what can never be right, early and with a message that says what to change. It looks at the syntax tree only. It
is no defence: what it lets through is judged by what it does.

Covered: text that is no module, no `ModelNew`, inheritance from the reference, plain forms of patching, no kernel at
all. Not covered: what code does at run time; `static_stage/patching.py` lists what its rule does not see.
"""

import json
import logging
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict

from kernel_env.terms import MAX_CODE_CHARS, Verdict

from ..errors import EvaluatorError
from ..sandbox.roots import blocking_directory
from .results import Submission
from .static_stage.child import MAX_REPLY_CHARS

NOBODY = 65534

logger = logging.getLogger(__name__)

# The package is named by its folder: importing it as a part of the server would import the server. Appended, so that no
# module beside it can stand in for one of the standard library.
_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from static_stage.child import main; "
    "main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))"
)
_WALL_PER_CPU_SECOND = 10.0
"""Wall-clock patience per CPU second allowed. Only CPU time counts against a submission: a busy host is our fault."""

_UNPARSABLE = (
    "cannot be parsed: the code is nested too deeply, or takes the parser too much time or memory. "
    "Write it with plain statements, and build large tables at run time."
)


@dataclass(frozen=True, slots=True)
class StaticFinding:
    """Why a submission goes no further."""

    verdict: Verdict
    """`rejected` or `no_kernel`."""

    rule: str
    """Id of the rule: those of `static_stage/rules.py`, and `empty`, `too_long`, `nul`, `encoding`, `unparsable`."""

    message: str
    """What to change, with the line where there is one."""

    line: int | None = None


def check(submission: Submission, *, timeout_s: float = 5.0, memory_mb: int = 512) -> StaticFinding | None:
    """First reason to refuse `submission`, or None.

    Args:
        timeout_s: CPU seconds the parser may use.
        memory_mb: Address space of the child.
    Raises:
        EvaluatorError: Our fault: no child could be started, it got no CPU time, or its reply makes no sense.
    """
    finding = _text_finding(submission.code)
    if finding is not None:
        return finding
    reply = _ask_child(submission, timeout_s, memory_mb)
    return _rejected("unparsable", _UNPARSABLE) if reply is None else _decode(reply)


def _text_finding(code: str) -> StaticFinding | None:
    """Refusals that need no parser."""
    if not code.strip():
        return _rejected("empty", "the submission is empty. Send one complete Python module that defines ModelNew.")
    if len(code) > MAX_CODE_CHARS:
        return _rejected("too_long", f"the code has {len(code)} characters; at most {MAX_CODE_CHARS} are accepted.")
    if "\0" in code:
        line = code.count("\n", 0, code.index("\0")) + 1
        return _rejected("nul", "the code contains a NUL character. Remove it.", line)
    try:
        code.encode("utf-8")
    except UnicodeEncodeError as error:
        line = code.count("\n", 0, error.start) + 1
        return _rejected(
            "encoding", "the code contains half of a surrogate pair, which is no character. Remove it.", line
        )
    return None


def _rejected(rule: str, message: str, line: int | None = None) -> StaticFinding:
    return StaticFinding(Verdict.REJECTED, rule, message if line is None else f"line {line}: {message}", line)


def _ask_child(submission: Submission, timeout_s: float, memory_mb: int) -> bytes | None:
    """Reply of the child; None when the text was too much for it."""
    cpu_s = max(1, round(timeout_s))
    command = [sys.executable, "-I", "-S", "-B", "-W", "ignore", "-c", _BOOT, str(Path(__file__).parent)]
    command += [submission.language.value, str(cpu_s), str(memory_mb * 1024 * 1024)]
    # A file in memory, not a pipe: a child that never reads cannot block the writer.
    text = os.memfd_create("submission", os.MFD_CLOEXEC)
    try:
        with open(text, "wb", closefd=False) as file:
            file.write(submission.code.encode("utf-8"))
        os.lseek(text, 0, os.SEEK_SET)
        child = subprocess.Popen(
            command,
            stdin=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
            **_as_nobody(),
        )
    except OSError as error:
        raise EvaluatorError("the static stage could not be started") from error
    finally:
        os.close(text)
    assert child.stdout is not None  # asked for above
    try:
        reply = _read(child.stdout, time.monotonic() + cpu_s * _WALL_PER_CPU_SECOND)
        status = child.wait(timeout=cpu_s)
    except subprocess.TimeoutExpired as error:
        raise EvaluatorError("the static stage did not end") from error
    finally:
        child.stdout.close()
        child.kill()
        child.wait()
    if status == 0:
        return reply
    if status < 0:
        logger.info("static child ended signal=%s", signal.Signals(-status).name)
        return None
    raise EvaluatorError("the static stage failed")


class _Identity(TypedDict, total=False):
    """Arguments of `Popen` that say as whom to run."""

    user: int
    group: int
    extra_groups: list[int]


def _as_nobody() -> _Identity:
    """No privileges for whoever parses hostile text, where the interpreter can be read without any."""
    needed = (sys.executable, os.path.realpath(sys.executable), sys.prefix, sys.base_prefix, str(Path(__file__).parent))
    if os.geteuid() != 0 or any(blocking_directory(path) for path in needed):
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def _environment() -> dict[str, str]:
    """Nothing but what the interpreter itself may need to find its library."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def _read(pipe: IO[bytes], deadline: float) -> bytes:
    """Everything the child writes, up to its end.

    Raises:
        EvaluatorError: More than a reply can hold, or nothing by the deadline.
    """
    received = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise EvaluatorError("the static stage got no CPU time")
        chunk = os.read(pipe.fileno(), MAX_REPLY_CHARS + 1)
        if not chunk:
            return received
        received += chunk
        if len(received) > MAX_REPLY_CHARS:
            raise EvaluatorError("the static stage replied with too much")


def _decode(reply: bytes) -> StaticFinding | None:
    try:
        violation = json.loads(reply)["violation"]
        if violation is None:
            return None
        rule, line, message = violation["rule"], violation["line"], violation["message"]
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluatorError("the static stage replied with no JSON") from error
    if not (isinstance(rule, str) and isinstance(message, str) and (line is None or isinstance(line, int))):
        raise EvaluatorError("the static stage replied with the wrong types")
    if rule == "unparsable":
        return _rejected(rule, _UNPARSABLE)
    if rule == "no_kernel":
        return StaticFinding(Verdict.NO_KERNEL, rule, message, line)
    return _rejected(rule, message, line)
