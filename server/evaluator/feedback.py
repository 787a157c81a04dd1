"""The text an agent reads after an evaluation: what went wrong and what to change, bounded and free of host paths."""

import re
from collections.abc import Sequence

from kernel_env.terms import Verdict

from .results import Roofline, Timing

MAX_FEEDBACK_CHARS = 6000
MAX_LOG_CHARS = 1500

_ADVICE = {
    Verdict.TIMEOUT: "Look for an endless loop, a deadlock, or far too much work in one call.",
    Verdict.OUT_OF_MEMORY: "Use less memory; an output and a small workspace should be all a call allocates.",
    Verdict.DEVICE_FAULT: "The kernel broke the device context, likely by an illegal access. Check every index.",
    Verdict.INCORRECT_VALUE: "Hidden inputs include negative, repeated and large values with rare spikes.",
    Verdict.TIMING_REJECTED: "Work of a call must begin after the call and be done, in stream order, when it returns.",
}


def for_failure(verdict: Verdict, text: str, log_tail: str) -> str:
    """Feedback for a submission that did not pass."""
    parts = [f"{verdict.value}: {text.strip()}" if text.strip() else f"{verdict.value}."]
    if verdict in _ADVICE:
        parts.append(_ADVICE[verdict])
    if log_tail.strip():
        parts.append("Output of the submission (end):\n" + log_tail.strip())
    return bounded("\n".join(parts))


def for_pass(timing: Timing, roofline: Roofline, suspicious: bool, reached: float | None = None) -> str:
    """Feedback for a correct submission: where the time is and how far the floor.

    Args:
        reached: Fraction of the roofline that is paid for, where it does not follow from the times.
    """
    if timing.mode == "interpreted":
        return "passed: correct on every hidden input. Triton runs in its interpreter here, so no time is scored."
    share = roofline.min_ms / timing.new_ms
    reached = min(share if reached is None else reached, 1.0)
    time = f"{timing.new_ms:.4g} ms per call ({timing.ci_low_ms:.4g} to {timing.ci_high_ms:.4g})"
    speedup = f"reference {timing.ref_ms:.4g} ms: {timing.ref_ms / timing.new_ms:.2f} times as fast"
    limit = f"{roofline.min_ms:.4g} ms ({roofline.bound} bound)"
    lines = [
        f"passed: correct on every hidden input, {time}, {speedup}.",
        f"The device could not do it in less than {limit}: {100 * reached:.0f} % of that limit is reached.",
    ]
    if timing.mode == "eager":
        lines.append("Calls were timed from a Python loop, launches included.")
    if suspicious and share > 1:
        lines.append("This is faster than the limit allows; the result is kept for review.")
    return bounded("\n".join(lines))


def at_size(text: str, number: int, sizes: int) -> str:
    """Feedback for one of several sizes that a task is judged at, counted from 1."""
    if sizes == 1:
        return text
    which = "the one you were shown" if number == 1 else "another than you were shown"
    return bounded(f"At size {number} of {sizes}, {which}: {text}")


def for_all_sizes(mean: str, parts: Sequence[str]) -> str:
    """Feedback for a submission that is correct at all of several sizes.

    Args:
        mean: About geometric means over the sizes.
        parts: About each size.
    """
    return bounded("\n".join([f"Over {len(parts)} sizes: {mean}", *parts]))


def bounded(text: str) -> str:
    """`text` without control characters and directories of the host, cut in the middle."""
    clean = "".join(c for c in text if c in "\n\t" or c.isprintable())
    clean = re.sub(r"(?<![\w.])/(?:[\w.+@-]+/)+", "", clean)
    if len(clean) <= MAX_FEEDBACK_CHARS:
        return clean
    half = MAX_FEEDBACK_CHARS // 2
    return f"{clean[:half]}\n[... {len(clean) - 2 * half} characters left out ...]\n{clean[-half:]}"


def tail_of(raw: bytes) -> str:
    """End of a candidate's log."""
    return raw.decode("utf-8", "replace")[-MAX_LOG_CHARS:]
