"""Exceptions of the server, all of them our fault or the client's, never a submission's.

    KernelEnvError
      InvalidRequest     the client asked for something that does not exist; the message says what to send instead
      Busy               no evaluation began within the step budget, or too many wait; nothing was judged
      EvaluatorError     our fault: a judge, zygote or device failed while a trusted kernel fails there as well

A submission's fault is a verdict (`kernel_env.models.Verdict`), which is a value.
"""


class KernelEnvError(Exception):
    """Base of every exception this package raises on purpose. Its text may be sent to a client."""


class InvalidRequest(KernelEnvError, ValueError):
    """The client's request cannot be served; the text says what to change."""


class Busy(KernelEnvError):
    """The evaluation did not begin: not within its budget, or too many wait already.

    Args:
        retry_after_s: When it is worth to ask again, seconds from now; None if that is not known.
    """

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class EvaluatorError(KernelEnvError):
    """Our fault. The episode keeps its turn and the reward is None."""
