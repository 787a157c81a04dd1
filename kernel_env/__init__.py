"""Typed client of the kernel-env environment, and the types that cross the wire.

Names are imported on first use: a submission imports `kernel_env.native` from this package, and must not pay the five
seconds that OpenEnv takes to import.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_env.client import KernelEnv
    from kernel_env.docker import DockerProvider
    from kernel_env.errors import ClientError, ReplyTimeout, ServerError, ServerFull, SessionLost
    from kernel_env.models import (
        UNSCORED,
        KernelAction,
        KernelObservation,
        KernelState,
        Language,
        Precision,
        Split,
        Stage,
        TurnRecord,
        Verdict,
    )

__all__ = [
    "UNSCORED",
    "ClientError",
    "DockerProvider",
    "KernelAction",
    "KernelEnv",
    "KernelObservation",
    "KernelState",
    "Language",
    "Precision",
    "ReplyTimeout",
    "ServerError",
    "ServerFull",
    "SessionLost",
    "Split",
    "Stage",
    "TurnRecord",
    "Verdict",
]

_MODULE_OF = {
    "KernelEnv": "client",
    "DockerProvider": "docker",
    "ClientError": "errors",
    "ReplyTimeout": "errors",
    "ServerError": "errors",
    "ServerFull": "errors",
    "SessionLost": "errors",
}
"""Where a public name lives; every other one is in `models`."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF.get(name, 'models')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
