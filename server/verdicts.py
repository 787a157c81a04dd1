"""Names for how a candidate can fail, used by both trusted sides.

The evaluator while it loads, the judge afterwards.
"""

from kernel_env.terms import Stage, Verdict

from .protocol import Failure

NOT_ITS_CHANNEL = "the process wrote to a channel that is not its own"

_BY_FAILURE = {
    Failure.OUT_OF_MEMORY: Verdict.OUT_OF_MEMORY,
    Failure.CONSTRUCTOR: Verdict.COMPILE_ERROR,
    Failure.COMPILATION: Verdict.COMPILE_ERROR,
    Failure.STRUCTURE: Verdict.INCORRECT_STRUCTURE,
}


def verdict_of(failure: Failure | None, stage: Stage) -> Verdict:
    """Verdict for a failure a candidate reports.

    An exception counts as a compile error until the first call is over.
    """
    other = Verdict.COMPILE_ERROR if stage is Stage.COMPILE else Verdict.RUNTIME_ERROR
    return other if failure is None else _BY_FAILURE.get(failure, other)
