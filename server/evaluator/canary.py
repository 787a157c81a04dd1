"""A trusted module that every healthy device evaluates: decides whose fault a dead judge was."""

from kernel_env.terms import Precision, Split

from ..tasks.task import Task

_SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
"""

CANARY = Task(
    task_id="canary", level=1, split=Split.RESERVED, precision=Precision.IEEE, source=_SOURCE, origin="canary"
)
