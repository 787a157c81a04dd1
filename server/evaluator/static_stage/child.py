"""Program of the disposable child: limits itself, reads one submission from stdin, writes one JSON line, ends.

`ast.parse` can stall for seconds and, as CPython documents, crash the interpreter; nothing else is at stake here, for
the submission is never run. The limits are set in here rather than before exec: the server has threads, and no code may
run between fork and exec in a process that has.
"""

import json
import resource
import sys
from dataclasses import asdict

from .rules import Unparsable, Violation, first_violation

MAX_REPLY_CHARS = 4096
_MAX_MESSAGE_CHARS = 600


def main(language: str, cpu_s: int, memory_bytes: int) -> None:
    """Judge the text on stdin. An exit by signal or without a line means that the text cannot be parsed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    code = sys.stdin.buffer.read().decode("utf-8")
    try:
        violation = first_violation(code, language)
    except (Unparsable, RecursionError, MemoryError):
        violation = Violation("unparsable", None, "")
    reply = None if violation is None else {**asdict(violation), "message": violation.message[:_MAX_MESSAGE_CHARS]}
    sys.stdout.write(json.dumps({"violation": reply}))
