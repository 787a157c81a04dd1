"""Which split a task belongs to. Trusted side; a pure function of the task's file name.

The rule works on the *operator*: the file name without level, number and punctuation, in lower case, so that `relu`,
`level1/19_ReLU` and a copy in another folder are the same operator and always land in the same split.

1. A fixed table: Softmax, LogSoftmax and GELU (minGPT's form and the plain one) are `eval`; ReLU, LeakyReLU, Sigmoid
   and Tanh are `train`; Swish, HardSigmoid and HardTanh are `reserved`.
2. Every other operator: SHA-256 of its name, read as a number, modulo 10. Zero is `eval`, the rest is `train`.
   The number of a KernelBench file plays no part, so renumbering moves nothing.
"""

import hashlib
import re

from kernel_env.terms import Split

EVAL_ONE_IN = 10
"""One operator in so many outside the table is held out for evaluation."""

_TABLE = {
    "softmax": Split.EVAL,
    "logsoftmax": Split.EVAL,
    "mingptnewgelu": Split.EVAL,
    "relu": Split.TRAIN,
    "leakyrelu": Split.TRAIN,
    "sigmoid": Split.TRAIN,
    "tanh": Split.TRAIN,
    "swish": Split.RESERVED,
    "hardsigmoid": Split.RESERVED,
    "hardtanh": Split.RESERVED,
}

# Built-in names and the KernelBench operator they stand for, where the two are spelled differently. KernelBench's plain
# GELU is held out together with minGPT's: whoever has trained on one has seen the other.
_SYNONYMS = {
    "gelu": "mingptnewgelu",
    "matmul": "squarematrixmultiplication",
    "sumreduce": "sumreductionoveradimension",
    "conv2d": "convstandard2dsquareinputsquarekernel",
    # The same operator in another type or form.
    "matmulbf16": "squarematrixmultiplication",
    "softmaxbf16": "softmax",
    "layernormfp16": "layernorm",
    "addrmsnorm": "rmsnorm",
    "rmsnormbackward": "rmsnorm",
    "batchedmatmul": "batchedmatrixmultiplication",
    "crossentropy": "crossentropyloss",
}


def operator_of(task_id: str) -> str:
    """Name of the operator: `level1/20_LeakyReLU` and `leaky_relu` both give `leakyrelu`."""
    stem = re.sub(r"^\d+_", "", task_id.rpartition("/")[2])
    name = re.sub(r"[^a-z0-9]", "", stem.lower())
    return _SYNONYMS.get(name, name)


def split_of(task_id: str) -> Split:
    """Split of a task, by the rule of this module."""
    operator = operator_of(task_id)
    if operator in _TABLE:
        return _TABLE[operator]
    number = int.from_bytes(hashlib.sha256(operator.encode()).digest(), "big")
    return Split.EVAL if number % EVAL_ONE_IN == 0 else Split.TRAIN
