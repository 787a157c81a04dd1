"""Closed vocabularies shared by client and server: languages, splits, precision contracts, stages and verdicts.

Plain enumerations without a dependency, so that a process that must start fast can import them. `kernel_env.models`
re-exports all of them.
"""

from enum import StrEnum

MAX_CODE_CHARS = 262_144
"""Longest submission accepted, in characters. Far below the 16 MiB limit of the WebSocket."""


class Language(StrEnum):
    """Languages a submission can be written in. Which of them a server offers depends on its device."""

    TRITON = "triton"
    """Triton kernels. Compiled on a CUDA device; run by Triton's interpreter on the CPU device."""

    CUDA = "cuda"
    """CUDA C++ through `kernel_env.native` or `torch.utils.cpp_extension.load_inline`. CUDA devices only."""

    CPP = "cpp"
    """C++ through `kernel_env.native` or `torch.utils.cpp_extension.load_inline`. CPU device only."""


class Split(StrEnum):
    """Which part of the task set a task belongs to."""

    TRAIN = "train"
    EVAL = "eval"
    RESERVED = "reserved"
    """Neither trained nor evaluated on by default; reachable by its id."""


class Precision(StrEnum):
    """Precision contract of a task: sets both the tolerance and the peak rate of the roofline."""

    IEEE = "ieee"
    """fp32 arithmetic as written; TF32 and lower precisions are wrong."""

    TF32 = "tf32"
    """fp32 in and out, TF32 tensor cores allowed for products, fp32 accumulation."""

    LOWP = "lowp"
    """Inputs are fp16 or bf16; products in that type, fp32 accumulation."""


class Stage(StrEnum):
    """Stage of an evaluation, in order. The first stage that fails ends it."""

    STATIC = "static"
    COMPILE = "compile"
    CORRECTNESS = "correctness"
    TIMING = "timing"
    DONE = "done"


class Verdict(StrEnum):
    """What became of a submission. A closed list; `busy` and `infra_error` are not the submission's fault."""

    PASSED = "passed"
    """Correct on every hidden input, and timed."""

    REJECTED = "rejected"
    """Not a usable submission: no Python, no `ModelNew`, or a construct that is never allowed."""

    COMPILE_ERROR = "compile_error"
    """Import, construction, compilation or the first call failed."""

    RUNTIME_ERROR = "runtime_error"
    """A call raised, or the process ended on its own."""

    TIMEOUT = "timeout"
    """A stage did not end within its time limit."""

    OUT_OF_MEMORY = "out_of_memory"
    """The submission used more host, device or scratch memory than it may."""

    INCORRECT_STRUCTURE = "incorrect_structure"
    """The output is not what the reference returns: wrong nesting, count or type."""

    INCORRECT_SHAPE = "incorrect_shape"
    INCORRECT_DTYPE = "incorrect_dtype"

    INCORRECT_VALUE = "incorrect_value"
    """Values differ from the reference by more than the tolerance."""

    INCORRECT_ALIAS = "incorrect_alias"
    """An output shares memory with an input, with another output, or is not freshly allocated by torch."""

    INCORRECT_PARAMETERS = "incorrect_parameters"
    """The parameters of `ModelNew` cannot be matched with those of the reference."""

    INPUT_MODIFIED = "input_modified"
    """The submission wrote to its inputs."""

    NONDETERMINISTIC = "nondeterministic"
    """Correct in some calls and wrong in others on inputs of the same kind."""

    NO_KERNEL = "no_kernel"
    """No kernel of the submission's own does the work."""

    TIMING_REJECTED = "timing_rejected"
    """Work ran outside the timed window, or calls were not independent of each other."""

    ROOFLINE_VIOLATION = "roofline_violation"
    """Correct, but faster than the device can be, twice. Pays no speed term."""

    DEVICE_FAULT = "device_fault"
    """The submission broke the device or its judge; a trusted kernel runs there fine."""

    BUSY = "busy"
    """Not evaluated within the step budget. No reward, the turn is kept: send the same code again."""

    INFRA_ERROR = "infra_error"
    """Our fault. No reward, the turn is kept."""


UNSCORED = frozenset({Verdict.BUSY, Verdict.INFRA_ERROR})
"""Verdicts that carry no reward and use up no turn."""
