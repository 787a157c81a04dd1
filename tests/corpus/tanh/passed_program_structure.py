"""Enum, dataclass, NamedTuple, a decorator, a protocol and a cached builder."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, NamedTuple

import torch
import torch.nn as nn
from torch import Tensor

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
""",
    {"run": "const float* x, float* y, int64_t n"},
)


class Layout(Enum):
    ROWS = auto()
    FLAT = auto()


@dataclass(frozen=True)
class Config:
    layout: Layout = Layout.FLAT
    unroll: int = 4


class Launch(NamedTuple):
    count: int
    config: Config


def counted(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(function)
    def inner(*args, **kwargs):
        inner.count += 1
        return function(*args, **kwargs)

    inner.count = 0
    return inner


class Planner:
    _cache: ClassVar[dict[tuple[int, ...], Launch]] = {}

    @classmethod
    def plan(cls, shape: tuple[int, ...]) -> Launch:
        if (found := cls._cache.get(shape)) is None:
            found = cls._cache[shape] = Launch(math.prod(shape), Config())
        return found


class ModelNew(nn.Module):
    @counted
    def forward(self, x: Tensor) -> Tensor:
        launch = Planner.plan(tuple(x.shape))
        match launch.config.layout:
            case Layout.FLAT:
                y = torch.empty_like(x)
                kernels.run(x, y, launch.count)
                return y
            case _:
                raise NotImplementedError(launch)
