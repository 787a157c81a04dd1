"""Wire types: what an agent sends, what it gets back, and the closed list of verdicts.

Everything here crosses the WebSocket as JSON. Fields carry their unit in their name. Nothing in this module decides
anything, and it imports neither torch nor the server.
"""

from openenv.core.env_server.types import Action, Observation, State
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from .terms import MAX_CODE_CHARS, UNSCORED, Language, Precision, Split, Stage, Verdict

__all__ = [
    "MAX_CODE_CHARS",
    "UNSCORED",
    "KernelAction",
    "KernelObservation",
    "KernelState",
    "Language",
    "Precision",
    "Split",
    "Stage",
    "TurnRecord",
    "Verdict",
]


class KernelAction(Action):
    """One submission: a complete Python module that defines `ModelNew`."""

    model_config = ConfigDict(use_attribute_docstrings=True, populate_by_name=True)

    code: str = Field(
        ...,
        max_length=MAX_CODE_CHARS,
        validation_alias=AliasChoices("code", "message"),
    )
    """Source of the module. A reply with one fenced code block is accepted: the block is taken. Alias: `message`."""

    language: str | None = Field(default=None, max_length=32)
    """`triton`, `cuda` or `cpp`. Default: read off the code, else the language chosen at reset."""


class KernelObservation(Observation):
    """State of the episode after `reset()` or one `step()`. Fields that do not apply are null."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    episode_id: str | None = None
    """Echo of the episode; compare it with your own to notice a reply that belongs to another request."""

    turn: int = 0
    """Turns used so far: 0 after reset, 1 after the first scored step."""

    max_turns: int = 0
    """Scored steps an episode has."""

    task_id: str | None = None
    level: int | None = None
    """KernelBench level, 1 for single operators."""

    language: str | None = None
    """Language this submission was taken as; after reset the one the prompt asks for."""

    seed: int | None = None
    """Seed given to `reset()`. It selects the task; it has no influence on hidden inputs."""

    problem: str = ""
    """The task as text for a language model. Full after reset, empty after a step."""

    prompt: str = ""
    """Same text as `problem`, under the name some trainers read. After a step: the feedback."""

    truncated: bool = False
    """True when the episode ended because no turn is left and the last submission did not pass."""

    stage: Stage | None = None
    """Stage the evaluation reached; `done` when it passed."""

    verdict: Verdict | None = None
    feedback: str = ""
    """What to change, for the agent. Bounded; holds no seed, host path or reference value."""

    correct: bool | None = None
    max_abs_err: float | None = None
    """Largest absolute error over every compared output."""

    speedup: float | None = None
    """`t_ref_ms / t_new_ms`, both timed the same way. Null where timing means nothing (interpreted Triton)."""

    t_ref_ms: float | None = None
    """Time per call of the reference, milliseconds, in the timing mode of the submission."""

    t_ref_eager_ms: float | None = None
    """Time per call of the reference called from Python without a graph, milliseconds."""

    t_new_ms: float | None = None
    """Time per call of the submission, milliseconds, by the judge's clock."""

    t_ci_low_ms: float | None = None
    t_ci_high_ms: float | None = None
    """Bounds of the 95 % interval of `t_new_ms`, with the spread of the hand-over included."""

    t_min_ms: float | None = None
    """Roofline: least time the device could need, milliseconds."""

    bound: str | None = None
    """Term that sets `t_min_ms`: `memory`, `compute` or `launch`."""

    arithmetic_intensity: float | None = None
    """FLOPs per byte of compulsory traffic."""

    roofline_frac: float | None = None
    """`t_min_ms / t_new_ms`; for a task of several sizes the geometric mean of theirs, each at most 1."""

    ref_roofline_frac: float | None = None
    """`t_min_ms / t_ref_ms`."""

    own_share: float | None = None
    """Share of a call's work that the submission's own kernels do, 0 to 1; multiplies the speed term of the reward.

    Null where PyTorch computes nothing in it, or where it could not be measured: then it counts as 1.
    """

    precision: Precision | None = None
    """Precision contract the task is judged under."""

    timing: str | None = None
    """How calls were timed: `graph` (one CUDA graph), `eager` (a Python loop) or `interpreted` (not timed)."""

    timed_calls: int | None = None
    """Calls per timed repetition, each on inputs of its own."""

    timed_repetitions: int | None = None

    rubric_scores: dict[str, float] = Field(default_factory=dict)
    """Score of every node of the rubric in this step."""

    best_reward: float | None = None
    """Best reward of the episode so far."""

    reward_gain: float | None = None
    """`best_reward` now minus before this step: sums to `best_reward`, for trainers that add up rewards."""

    roofline_violation: bool = False
    suspicious: bool = False
    """Worth a human look: faster than the floor, or more than 50 times faster than the reference."""

    cached: bool = False
    """True when this exact code was evaluated before in the episode and its stored result is returned."""

    device: str | None = None
    """Name of the device, for instance `NVIDIA H200` or `cpu`."""

    gpu_id: str | None = None
    """Which device of the server: `cuda:0`, `cpu`."""

    isolation: str | None = None
    """`strong` when every layer of the sandbox is in force, else `weak`."""

    queue_wait_s: float | None = None
    """Seconds spent waiting for a device."""

    eval_s: float | None = None
    """Seconds the evaluation took, waiting excluded."""

    phases: dict[str, float] = Field(default_factory=dict)
    """Seconds per phase of the evaluation."""

    infra_error: str | None = None
    """Set when the verdict is `infra_error` or `busy`: what happened on our side."""

    retry_after_s: float | None = None
    """Set when the verdict is `busy` and it is known: in how many seconds the same step would have its turn."""


class TurnRecord(BaseModel):
    """One scored step of an episode."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="forbid")

    turn: int
    stage: Stage
    verdict: Verdict
    reward: float | None
    speedup: float | None
    roofline_frac: float | None
    roofline_violation: bool
    suspicious: bool
    gpu_id: str | None
    queue_wait_s: float | None
    eval_s: float | None
    code_sha: str
    """SHA-256 of the submitted code, hexadecimal."""

    phases: dict[str, float]


class KernelState(State):
    """State of the episode, for the trainer rather than the agent."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    task_id: str | None = None
    level: int | None = None
    split: Split | None = None
    turn: int = 0
    max_turns: int = 0
    best_speedup: float | None = None
    best_reward: float | None = None
    dataset_size: int = 0
    """Tasks a seed chooses from with the filters of the last reset."""

    history: list[TurnRecord] = Field(default_factory=list)
