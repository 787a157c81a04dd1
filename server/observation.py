"""Puts results into observations: which field says what, and which stays null. Pure; server side.

Numbers that are not finite become null: JSON has no word for them, and no trainer should have to guess.
"""

import math
from typing import Any

from kernel_env.models import KernelObservation, Language, Verdict

from .episode import Episode
from .evaluator.interface import DeviceInfo
from .evaluator.results import EvalResult

MAX_FEEDBACK_CHARS = 16_000
"""A model has to read it; compilers can write a thousand times as much."""

SUSPICIOUS_SPEEDUP = 50.0


def reset_observation(episode: Episode, prompt: str, device: DeviceInfo, isolation: str) -> KernelObservation:
    """The task, before the first submission."""
    return KernelObservation(
        **_common(episode),
        language=episode.language.value,
        problem=prompt,
        prompt=prompt,
        precision=episode.task.precision,
        device=device.name,
        gpu_id=device.gpu_id,
        isolation=isolation,
    )


def scored_observation(episode: Episode, language: Language, result: EvalResult, *, cached: bool) -> KernelObservation:
    """Outcome of a submission that was judged; the reward is still to be set."""
    feedback = _readable(result.feedback)
    times = _times(result)
    speedup, fraction = times.get("speedup"), times.get("roofline_frac")
    is_violation = result.verdict is Verdict.ROOFLINE_VIOLATION
    is_odd = (speedup or 0.0) > SUSPICIOUS_SPEEDUP or (fraction or 0.0) > 1.0
    return KernelObservation(
        **_common(episode),
        **times,
        language=language.value,
        prompt=feedback,
        feedback=feedback,
        truncated=episode.is_done and result.verdict is not Verdict.PASSED,
        stage=result.stage,
        verdict=result.verdict,
        correct=result.is_correct,
        max_abs_err=_finite(result.max_abs_err),
        precision=result.precision or episode.task.precision,
        own_share=_finite(result.own_share),
        roofline_violation=is_violation,
        suspicious=result.suspicious or is_violation or is_odd,
        cached=cached,
        device=result.device,
        gpu_id=result.gpu_id,
        isolation=result.isolation,
        queue_wait_s=_finite(result.queue_wait_s),
        eval_s=_finite(result.eval_s),
        phases={name: seconds for name, seconds in result.phases.items() if math.isfinite(seconds)},
    )


def unscored_observation(
    episode: Episode, language: Language, verdict: Verdict, reason: str, retry_after_s: float | None = None
) -> KernelObservation:
    """Answer to a submission that was not judged, for a reason on our side."""
    text = _readable(reason)
    advice = "The episode is over; call reset()." if episode.is_done else "No turn was used: send the same code again."
    feedback = f"Not evaluated: {text}. {advice}"
    return KernelObservation(
        **_common(episode),
        language=language.value,
        prompt=feedback,
        feedback=feedback,
        verdict=verdict,
        infra_error=text,
        retry_after_s=_finite(retry_after_s),
    )


def _common(episode: Episode) -> dict[str, Any]:
    """Fields that every observation of an episode has."""
    return {
        "done": episode.is_done,
        "episode_id": episode.episode_id,
        "turn": episode.turn,
        "max_turns": episode.max_turns,
        "task_id": episode.task.task_id,
        "level": episode.task.level,
        "seed": episode.seed,
        "best_reward": episode.best_reward,
    }


def _times(result: EvalResult) -> dict[str, Any]:
    """Fields about speed. An interpreted kernel keeps its roofline and has no time."""
    timing, roofline = result.timing, result.roofline
    fields: dict[str, Any] = {}
    if roofline is not None:
        fields["t_min_ms"] = _finite(roofline.min_ms)
        fields["bound"] = roofline.bound
        fields["arithmetic_intensity"] = _ratio(roofline.flops, roofline.bytes_moved)
    if timing is None:
        return fields
    fields["timing"] = timing.mode
    if timing.mode == "interpreted":
        return fields
    fields["speedup"] = _ratio(timing.ref_ms, timing.new_ms)
    fields["t_ref_ms"] = _finite(timing.ref_ms)
    fields["t_ref_eager_ms"] = _finite(timing.ref_eager_ms)
    fields["t_new_ms"] = _finite(timing.new_ms)
    fields["t_ci_low_ms"] = _finite(timing.ci_low_ms)
    fields["t_ci_high_ms"] = _finite(timing.ci_high_ms)
    fields["timed_calls"] = timing.calls
    fields["timed_repetitions"] = timing.repetitions
    if roofline is not None:
        fields["roofline_frac"] = _finite(result.roofline_frac)
        fields["ref_roofline_frac"] = _ratio(roofline.min_ms, timing.ref_ms)
    return fields


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _ratio(numerator: float, denominator: float) -> float | None:
    return _finite(numerator / denominator) if denominator > 0 else None


def _readable(text: str) -> str:
    """`text`, bounded and valid Unicode: compilers echo whatever bytes a submission held."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= MAX_FEEDBACK_CHARS:
        return text
    return f"{text[:MAX_FEEDBACK_CHARS]}\n[cut after {MAX_FEEDBACK_CHARS} characters]"
