"""The server's settings: every environment variable with its unit and default, read once.

Read by `app.py` and `cli.py` only, and passed down as values. A bad value ends the start with a message that names the
variable; it is never replaced by a default in silence.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from .errors import KernelEnvError
from .policy import Policy

ValueT = TypeVar("ValueT")
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)

MIN_SESSION_TIMEOUT_S = 3600.0
"""OpenEnv notes activity only after a step has ended, so a shorter limit could end a session in the middle of one."""

MIN_SLOTS, MAX_SLOTS = 2, 16
FIRST_USER_UID = 1000
NOBODY_UID = 65534
_DEVICE = re.compile(r"(cpu|cuda):(0|[1-9][0-9]?)")


class Keep(StrEnum):
    """Which evaluations leave an audit bundle."""

    OFF = "off"
    FLAGGED = "flagged"
    """Those that look odd, see `evaluator.audit.reasons_for`."""

    ALL = "all"


class BadSetting(KernelEnvError, ValueError):
    """An environment variable has a value that cannot be used; the text names it."""


def _default_slots() -> int:
    return min(max(os.cpu_count() or MIN_SLOTS, MIN_SLOTS), MAX_SLOTS)


def _default_audit_dir() -> Path:
    return Path.home() / ".cache" / "kernel-env" / "audit"


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator can choose. The variable that sets a field is named below it."""

    max_concurrent_envs: int = 64
    """MAX_CONCURRENT_ENVS: sessions at a time, 1 to 4096."""

    max_turns: int = 4
    """KERNEL_ENV_MAX_TURNS: scored steps per episode, 1 to 1000."""

    step_budget_s: float | None = None
    """KERNEL_ENV_STEP_BUDGET_S: a step not begun after so many seconds is answered `busy`. Default: off."""

    session_timeout_s: float | None = None
    """KERNEL_ENV_SESSION_TIMEOUT_S: an idle session ends after so many seconds, 3600 or more. Default: off."""

    tasks_folder: str | None = None
    """KERNEL_ENV_TASKS: where more tasks come from, see docs/tasks.md. Default: the built-in tasks only.

    A KernelBench checkout, a folder of task files, one file, an archive, or KernelBench's data set.
    """

    devices: tuple[str, ...] = ()
    """KERNEL_ENV_DEVICES: `cpu`, or CUDA devices such as `cuda:0,cuda:1`. Default `auto`: every GPU, else the CPU.

    `cpu:0,cpu:1` makes several devices out of one CPU, to try what many devices need; their times mean little.
    """

    eval_log: Path | None = None
    """KERNEL_ENV_EVAL_LOG: file that event lines are appended to. Default: standard output only."""

    require_isolation: bool = False
    """KERNEL_ENV_REQUIRE_ISOLATION: 1 refuses to start unless every layer of the sandbox is in force. Default: 0."""

    audit: Keep = Keep.FLAGGED
    """KERNEL_ENV_AUDIT: evaluations that leave an audit bundle: `flagged` (odd ones), `all`, or `off`."""

    audit_dir: Path = field(default_factory=_default_audit_dir)
    """KERNEL_ENV_AUDIT_DIR: folder of audit bundles. Default: ~/.cache/kernel-env/audit."""

    uid_base: int = 61000
    """KERNEL_ENV_UID_BASE: first user id of the candidate slots, 1000 or more."""

    slots: int = field(default_factory=_default_slots)
    """KERNEL_ENV_SLOTS: candidate processes at a time, 1 to 256. Default: number of cores, at least 2, at most 16."""

    max_waiting: int = 256
    """KERNEL_ENV_MAX_WAITING: evaluations that may wait for a slot, 0 to 4096; any further is answered `busy`."""

    compile_timeout_s: float = 180.0
    """KERNEL_ENV_COMPILE_TIMEOUT_S: limit of import, construction and first call, seconds."""

    policy: Policy = Policy.STRICT
    """KERNEL_ENV_POLICY: who may compute.

    `strict`: on one-operator tasks, nothing is paid where PyTorch does arithmetic; on others the speed term is
    multiplied by the own kernels' share of the work. `share`: the latter everywhere. `off`: all is paid.
    """

    run_timeout_s: float = 60.0
    """KERNEL_ENV_RUN_TIMEOUT_S: limit of the calls that are compared and timed, seconds."""

    host_memory_gb: float = 16.0
    """KERNEL_ENV_HOST_MEMORY_GB: host memory of one candidate, 1e9 bytes."""

    host: str = "127.0.0.1"
    """HOST: address to listen on."""

    port: int = 8000
    """PORT: TCP port to listen on."""

    def __post_init__(self) -> None:
        """Refuse combinations that cannot work.

        Raises:
            BadSetting: Slots would get the user id of `nobody` or above.
        """
        if self.uid_base + self.slots > NOBODY_UID:
            raise BadSetting(
                f"KERNEL_ENV_UID_BASE={self.uid_base} with {self.slots} slots reaches {NOBODY_UID}, "
                "the user id of nobody: choose a lower base"
            )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        """Settings out of `environ`. An unset or empty variable gives the default.

        Raises:
            BadSetting: A value cannot be used.
        """
        read, default = _Reader(environ), cls()
        return cls(
            max_concurrent_envs=read("MAX_CONCURRENT_ENVS", _integer(1, 4096), default.max_concurrent_envs),
            max_turns=read("KERNEL_ENV_MAX_TURNS", _integer(1, 1000), default.max_turns),
            step_budget_s=read("KERNEL_ENV_STEP_BUDGET_S", _seconds(0.1), None),
            session_timeout_s=read("KERNEL_ENV_SESSION_TIMEOUT_S", _seconds(MIN_SESSION_TIMEOUT_S), None),
            tasks_folder=read("KERNEL_ENV_TASKS", _path_of_tasks, None),
            devices=read("KERNEL_ENV_DEVICES", parse_devices, ()),
            eval_log=read("KERNEL_ENV_EVAL_LOG", Path, None),
            require_isolation=read("KERNEL_ENV_REQUIRE_ISOLATION", _flag, False),
            audit=read("KERNEL_ENV_AUDIT", partial(_one_of, Keep), default.audit),
            audit_dir=read("KERNEL_ENV_AUDIT_DIR", Path, default.audit_dir),
            uid_base=read("KERNEL_ENV_UID_BASE", _integer(FIRST_USER_UID, NOBODY_UID), default.uid_base),
            slots=read("KERNEL_ENV_SLOTS", _integer(1, 256), default.slots),
            max_waiting=read("KERNEL_ENV_MAX_WAITING", _integer(0, 4096), default.max_waiting),
            compile_timeout_s=read("KERNEL_ENV_COMPILE_TIMEOUT_S", _seconds(1.0), default.compile_timeout_s),
            policy=read("KERNEL_ENV_POLICY", partial(_one_of, Policy), default.policy),
            run_timeout_s=read("KERNEL_ENV_RUN_TIMEOUT_S", _seconds(1.0), default.run_timeout_s),
            host_memory_gb=read("KERNEL_ENV_HOST_MEMORY_GB", _number(0.5, 1e6, "GB"), default.host_memory_gb),
            host=read("HOST", str, default.host),
            port=read("PORT", _integer(0, 65535), default.port),
        )


@dataclass(frozen=True, slots=True)
class _Reader:
    environ: Mapping[str, str]

    def __call__(self, name: str, parse: Callable[[str], ValueT], default: ValueT) -> ValueT:
        text = self.environ.get(name, "").strip()
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise BadSetting(f"{name}={text!r}: {error}") from error


def parse_devices(text: str) -> tuple[str, ...]:
    """Device names out of a comma-separated list; `auto` gives an empty tuple.

    Raises:
        ValueError: Unknown name, a name twice, or CPU and GPU mixed: one server judges on one kind of device.
    """
    if text == "auto":
        return ()
    names = tuple(part.strip() for part in text.split(","))
    if names == ("cpu",):
        return names
    for name in names:
        if not _DEVICE.fullmatch(name):
            raise ValueError(f"{name!r} is not a device; expected auto, cpu, or a list such as cuda:0,cuda:1")
    if len({name.partition(":")[0] for name in names}) > 1:
        raise ValueError("devices of two kinds; one server judges on one kind")
    if len(set(names)) != len(names):
        raise ValueError("a device is named twice")
    return names


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return int(text)

    return parse


def _number(low: float, high: float, unit: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        # Written so that NaN fails it.
        if not low <= value <= high:
            raise ValueError(f"expected a number from {low:g} to {high:g} ({unit})")
        return value

    return parse


def _seconds(low: float) -> Callable[[str], float]:
    return _number(low, 1e7, "seconds")


def _one_of(kind: type[ChoiceT], text: str) -> ChoiceT:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"must be one of {', '.join(kind)}") from None


def _flag(text: str) -> bool:
    if text not in {"0", "1"}:
        raise ValueError("expected 0 or 1")
    return text == "1"


def _path_of_tasks(text: str) -> str:
    if not Path(text).exists():
        raise ValueError("no such file or folder")
    return text
