"""Which precision contract a task is judged under, read off its source. Trusted side; reads the AST, runs nothing.

The contract sets the tolerance of the comparison and the peak rate of the roofline (`kernel_env.models.Precision`):

- The file says so itself: a top-level `PRECISION = "ieee"`, `"tf32"` or `"lowp"` wins over everything below.
- It names a 16-bit float type (`float16`, `bfloat16`, `half`, also as a method): `lowp`.
- It names an operation that PyTorch gives to the matrix units (products of matrices, linear and convolution layers,
  recurrent layers, attention, `einsum`, the `@` operator): `tf32`, since PyTorch itself may run these in TF32 and an
  agent may as well.
- Otherwise `ieee`: fp32 as written.

Names count wherever the file uses them as code; comments and strings do not.
"""

import ast

from kernel_env.terms import Precision

from ..errors import InvalidRequest

PRECISION_NAME = "PRECISION"

_SIXTEEN_BIT = frozenset({"float16", "bfloat16", "half", "HalfTensor", "BFloat16Tensor"})

_PRODUCTS = frozenset(
    {
        "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv",
        "einsum", "tensordot", "chain_matmul", "multi_dot",
        "linear", "Linear", "LazyLinear", "bilinear", "Bilinear",
        "RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell",
        "MultiheadAttention", "scaled_dot_product_attention", "multi_head_attention_forward",
        "Transformer", "TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder", "TransformerDecoderLayer",
    }
)  # fmt: skip

_CONVOLUTIONS = tuple(
    f"{prefix}{kind}{dimensions}d"
    for prefix in ("", "Lazy")
    for kind in ("conv", "conv_transpose", "Conv", "ConvTranspose")
    for dimensions in (1, 2, 3)
)

_MATRIX_UNIT_NAMES = _PRODUCTS.union(_CONVOLUTIONS)


def precision_of(tree: ast.Module, file_name: str) -> Precision:
    """Contract of the task whose module is `tree`.

    Raises:
        InvalidRequest: `PRECISION` is set to something that is no contract.
    """
    declared = _declared(tree, file_name)
    if declared is not None:
        return declared
    names = {name for node in ast.walk(tree) if (name := _name(node)) is not None}
    if names & _SIXTEEN_BIT:
        return Precision.LOWP
    if names & _MATRIX_UNIT_NAMES or any(isinstance(node, ast.MatMult) for node in ast.walk(tree)):
        return Precision.TF32
    return Precision.IEEE


def _declared(tree: ast.Module, file_name: str) -> Precision | None:
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        if not any(isinstance(target, ast.Name) and target.id == PRECISION_NAME for target in statement.targets):
            continue
        value = statement.value.value if isinstance(statement.value, ast.Constant) else None
        if not isinstance(value, str) or value not in {member.value for member in Precision}:
            allowed = ", ".join(repr(member.value) for member in Precision)
            raise InvalidRequest(f"{file_name}: {PRECISION_NAME} must be one of {allowed}")
        return Precision(value)
    return None


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return node.name.rpartition(".")[2] if isinstance(node, ast.alias) else None
