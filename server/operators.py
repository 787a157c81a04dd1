"""Which operators of PyTorch compute: names only, no torch. Read by the rule about them and by the clock for shares."""

from collections.abc import Iterable

# fmt: off
NOT_ARITHMETIC = frozenset(
    f"aten.{name}"
    for name in (
        # Memory.
        "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted",
        # Known values, for atomics and workspaces.
        "zeros", "zeros_like", "new_zeros", "zero_", "zero", "ones", "ones_like", "new_ones", "full", "full_like",
        "new_full", "fill", "fill_", "arange", "scalar_tensor",
        # Movement and layout.
        "clone", "copy", "copy_", "_to_copy", "contiguous", "lift_fresh", "lift_fresh_copy", "cat", "stack",
        "constant_pad_nd", "repeat", "resize_", "set_", "flip", "roll",
        # Views.
        "alias", "as_strided", "detach", "detach_", "diagonal", "expand", "expand_as", "flatten", "movedim", "narrow",
        "permute", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "squeeze_", "t", "t_",
        "transpose", "transpose_", "unbind", "unflatten", "unfold", "unsqueeze", "unsqueeze_", "view", "view_as",
        "_unsafe_view", "_reshape_alias", "chunk", "view_as_real", "view_as_complex",
        # Questions.
        "is_same_size", "_local_scalar_dense", "item", "equal", "is_pinned", "sym_size", "sym_stride", "sym_numel",
    )
)
# fmt: on
"""Operators of PyTorch that allocate, set, move, view or ask. Every other one of `aten` computes."""


def is_arithmetic(operator: str) -> bool:
    """Whether an operator of PyTorch computes, by the name torch gives it, `aten.add.Tensor` or `aten.add`."""
    return operator.startswith("aten.") and ".".join(operator.split(".")[:2]) not in NOT_ARITHMETIC


def arithmetic(operators: Iterable[str]) -> tuple[str, ...]:
    """Operators of PyTorch among `operators` that compute, each once, by name.

    Args:
        operators: As torch spells them, `aten.add.Tensor`. Operators of other namespaces are the submission's own.
    """
    return tuple(sorted({".".join(name.split(".")[:2]) for name in operators if is_arithmetic(name)}))
