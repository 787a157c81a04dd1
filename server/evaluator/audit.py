"""Audit bundles: everything of one evaluation that somebody needs who doubts it, or wants to see it again.

Trusted side; no torch. A bundle is one JSON file. It holds the hidden seeds of an evaluation that is over, so it is
readable by the server's user alone, and neither it nor its path is ever sent to a client.
"""

import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from kernel_env.terms import Language, Precision, Split, Verdict

from ..errors import InvalidRequest
from ..operators import arithmetic
from ..settings import Keep
from ..tasks.task import Task
from .results import EvalResult, Submission

FORMAT = 1
MAX_BYTES = 4 << 20
"""Of one bundle. Code and task are smaller; what is larger is not written."""

MOST_PER_REASON = 100
"""Bundles kept for each first reason, the latest. By reason, so that a flood of one kind does not drive out another."""

DOUBTFUL_SHARE = 0.2
"""An own share of the work below this is looked at."""

OWN_KERNELS = ("native.", "triton.")
"""How the names of kernels begin that a recorded call was seen to launch."""

logger = logging.getLogger(__name__)


class Reason(StrEnum):
    """Why an evaluation is looked at."""

    ROOFLINE_VIOLATION = "roofline_violation"
    SUSPICIOUS = "suspicious"
    """Faster than a floor that is not validated, or fifty times the reference."""

    POLICY_DOUBT = "policy_doubt"
    """Little or an unknown part of the work is the submission's, or no kernel of its own was seen."""

    DEVICE_FAULT = "device_fault"
    """The judge ended during it."""

    ON_REQUEST = "on_request"


class Bundle(BaseModel):
    """One evaluation."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[1]
    reasons: list[str]
    time_unix_s: float
    task: dict[str, Any]
    """Fields of `tasks.task.Task`; of one that is judged at several sizes, the size in question."""

    code: str
    language: str
    code_sha256: str
    environment: dict[str, Any]
    """Versions, device and ceilings, with a digest over them."""

    result: dict[str, Any]
    """Fields of `EvalResult`."""

    trail: dict[str, Any] | None
    """What the judge did, hidden seeds included; null if it did not live to tell."""

    @property
    def secret(self) -> str | None:
        """What every hidden value of the evaluation follows from."""
        return None if self.trail is None else str(self.trail["secret"])

    def the_task(self) -> Task:
        """The task as it was."""
        fields = {**self.task, "split": Split(self.task["split"]), "precision": Precision(self.task["precision"])}
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return Task(**(fields | lists))

    def the_submission(self) -> Submission:
        """The submission as it was."""
        return Submission(self.code, Language(self.language))


def read(path: Path) -> Bundle:
    """A bundle from a file.

    Raises:
        InvalidRequest: It cannot be read, or is no bundle; the text says what is wrong.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidRequest(f"{path} is larger than a bundle can be ({MAX_BYTES} bytes)")
        text = path.read_text(encoding="utf-8", errors="surrogatepass")
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is no audit bundle: it is not UTF-8") from error
    try:
        bundle = Bundle.model_validate(json.loads(text))
        bundle.the_task(), bundle.the_submission()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise InvalidRequest(f"{path} is no audit bundle of format {FORMAT}: {where}: {first['msg']}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidRequest(f"{path} is no audit bundle of format {FORMAT}: {error}") from error
    if bundle.the_submission().sha256 != bundle.code_sha256:
        raise InvalidRequest(f"{path} was changed: its code does not have the digest it names")
    return bundle


def reasons_for(result: EvalResult, trail: Mapping[str, Any] | None) -> list[Reason]:
    """Why this evaluation is looked at, the gravest first; empty if nothing is odd about it."""
    found = []
    if result.verdict is Verdict.ROOFLINE_VIOLATION:
        found.append(Reason.ROOFLINE_VIOLATION)
    if result.verdict is Verdict.DEVICE_FAULT:
        found.append(Reason.DEVICE_FAULT)
    if result.suspicious:
        found.append(Reason.SUSPICIOUS)
    if result.is_correct and trail is not None and _is_doubtful(result.own_share, trail["operators"]):
        found.append(Reason.POLICY_DOUBT)
    return found


def _is_doubtful(own_share: float | None, operators: list[str]) -> bool:
    if own_share is not None:
        return own_share < DOUBTFUL_SHARE
    has_own = any(name.startswith(OWN_KERNELS) for name in operators)
    return not has_own or bool(arithmetic(operators))


def environment(kind: str, about: Mapping[str, Any], isolation: str) -> dict[str, Any]:
    """Where an evaluation took place, and a digest that differs if anything of it does.

    Args:
        kind: `cpu` or `cuda`.
        about: What the judge says of itself and its device.
    """
    fields: dict[str, Any] = {
        "kind": kind,
        "isolation": isolation,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "driver": _driver(),
        "versions": {name: _version(name) for name in ("openenv-kernel-env", "torch", "triton", "numpy")},
    }
    text = json.dumps({**fields, "device": about["name"]}, sort_keys=True)
    # Ceilings differ a little from start to start, so they are no part of the digest.
    return {**fields, **about, "digest": hashlib.sha256(text.encode()).hexdigest()[:16]}


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _driver() -> str:
    with suppress(OSError):
        found = re.search(r"\d+\.\d+(\.\d+)?", Path("/proc/driver/nvidia/version").read_text(encoding="utf-8"))
        return found.group() if found else "unknown"
    return "none"


class Archive:
    """Folder of bundles. Threads may share it."""

    def __init__(self, folder: Path, keep: Keep, most_per_reason: int = MOST_PER_REASON) -> None:
        """Make nothing yet: the folder comes with the first bundle."""
        self._folder, self._keep, self._most_per_reason = folder, keep, most_per_reason
        self._lock = threading.Lock()

    def consider(
        self,
        task: Task,
        submission: Submission,
        result: EvalResult,
        trail: Mapping[str, Any] | None,
        where: Callable[[], dict[str, Any]],
    ) -> Path | None:
        """Write a bundle if there is a reason to; its path. Never raises: an evaluation does not fail for its record.

        Args:
            where: Makes the environment.
        """
        reasons = [] if self._keep is Keep.OFF else reasons_for(result, trail)
        if self._keep is Keep.ALL and not reasons:
            reasons = [Reason.ON_REQUEST]
        if not reasons:
            return None
        bundle = Bundle(
            format=1,
            reasons=[reason.value for reason in reasons],
            time_unix_s=round(time.time(), 6),
            task=asdict(task),
            code=submission.code,
            language=submission.language.value,
            code_sha256=submission.sha256,
            environment=where(),
            result=asdict(result),
            trail=None if trail is None else dict(trail),
        )
        try:
            with self._lock:
                return self._store(bundle, reasons[0])
        except (OSError, ValueError) as error:
            logger.warning("audit_bundle_lost reason=%s error=%s", reasons[0], error)
            return None

    def _store(self, bundle: Bundle, reason: Reason) -> Path:
        """Write the file under another name, then give it its own: nobody ever reads half a bundle.

        Raises:
            OSError: It cannot be written.
            ValueError: It is too large.
        """
        data = json.dumps(bundle.model_dump(), ensure_ascii=True).encode()
        if len(data) > MAX_BYTES:
            raise ValueError(f"{len(data)} bytes, more than {MAX_BYTES}")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        task = re.sub(r"[^A-Za-z0-9]+", "-", str(bundle.task["task_id"]))[:40]
        stamp = f"{bundle.time_unix_s:.6f}".replace(".", "")
        name = f"{reason.value}.{stamp}.{task}.{bundle.code_sha256[:12]}.json"
        handle, partial = tempfile.mkstemp(dir=self._folder, suffix=".partial")  # mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            path = self._folder / name
            Path(partial).replace(path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
        for old in sorted(self._folder.glob(f"{reason.value}.*.json"))[: -self._most_per_reason]:
            old.unlink(missing_ok=True)
        logger.info("audit_bundle_written reason=%s name=%s", reason.value, name)
        return path
