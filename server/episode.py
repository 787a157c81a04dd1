"""One episode: what has been submitted so far and what it earned. Server side; knows no evaluator and no wire."""

from dataclasses import dataclass, field

from kernel_env.models import KernelObservation, KernelState, Language, TurnRecord, Verdict

from .evaluator.results import EvalResult, Submission
from .tasks.task import Task

MAX_UNSCORED_IN_A_ROW = 2
"""Answers `infra_error` before the episode ends: a trainer that resends must not loop on a broken server for ever."""


@dataclass(slots=True)
class Episode:
    """Mutable, owned by one environment."""

    episode_id: str
    task: Task
    language: Language
    max_turns: int
    seed: int | None
    dataset_size: int
    turn: int = 0
    steps: int = 0
    """Answered steps, unscored ones included."""

    is_done: bool = False
    best_reward: float | None = None
    best_speedup: float | None = None
    history: list[TurnRecord] = field(default_factory=list)
    _results: dict[tuple[str, Language], EvalResult] = field(default_factory=dict)
    _infra_errors_in_a_row: int = 0

    def stored(self, submission: Submission) -> EvalResult | None:
        """Result of this exact submission, if it was judged in this episode."""
        return self._results.get((submission.sha256, submission.language))

    def begin_scored(self, submission: Submission, result: EvalResult) -> None:
        """Use up a turn for `result`."""
        self._results[(submission.sha256, submission.language)] = result
        self.steps += 1
        self.turn += 1
        self._infra_errors_in_a_row = 0
        self.is_done = self.turn >= self.max_turns

    def begin_unscored(self, verdict: Verdict) -> None:
        """Count an answer that is not the submission's fault; the turn is kept. `busy` never ends an episode."""
        self.steps += 1
        if verdict is Verdict.INFRA_ERROR:
            self._infra_errors_in_a_row += 1
            self.is_done = self._infra_errors_in_a_row > MAX_UNSCORED_IN_A_ROW

    def earn(self, reward: float | None) -> float:
        """Take a reward into account.

        Returns:
            What it adds to the best reward so far; the gains of an episode sum to its best reward.
        """
        if reward is None:
            return 0.0
        before = self.best_reward or 0.0
        self.best_reward = max(before, reward)
        return self.best_reward - before

    def record(self, observation: KernelObservation, code_sha: str) -> None:
        """Append a scored step to the history."""
        assert observation.stage is not None
        assert observation.verdict is not None
        if observation.correct and observation.speedup is not None:
            self.best_speedup = max(self.best_speedup or 0.0, observation.speedup)
        self.history.append(
            TurnRecord(
                turn=self.turn,
                stage=observation.stage,
                verdict=observation.verdict,
                reward=None if observation.reward is None else float(observation.reward),
                speedup=observation.speedup,
                roofline_frac=observation.roofline_frac,
                roofline_violation=observation.roofline_violation,
                suspicious=observation.suspicious,
                gpu_id=observation.gpu_id,
                queue_wait_s=observation.queue_wait_s,
                eval_s=observation.eval_s,
                code_sha=code_sha,
                phases=dict(observation.phases),
            )
        )

    def state(self) -> KernelState:
        """A copy for the trainer."""
        return KernelState(
            episode_id=self.episode_id,
            step_count=self.steps,
            task_id=self.task.task_id,
            level=self.task.level,
            split=self.task.split,
            turn=self.turn,
            max_turns=self.max_turns,
            best_speedup=self.best_speedup,
            best_reward=self.best_reward,
            dataset_size=self.dataset_size,
            history=list(self.history),
        )
