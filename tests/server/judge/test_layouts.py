"""Descriptions of outputs: honest ones become views of the judge's memory, hostile ones a verdict or nothing."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_env.terms import Verdict
from server.judge.device import Arena
from server.judge.layouts import OutputSpec, byte_span, calls_share_memory, check_called, view_output
from server.protocol import DTYPES, OTHER_DTYPE, Called, Region, TensorLayout

FLOAT, HALF, BYTE, DOUBLE = (DTYPES.index(name) for name in ("float32", "float16", "uint8", "float64"))
ARENA_BYTES = 4096


def arena() -> Arena:
    data = torch.arange(ARENA_BYTES // 4, dtype=torch.float32).view(torch.uint8)
    return Arena(data, ARENA_BYTES)


def spec(*shapes: tuple[int, ...], structure: str = "T", aliases_input: bool = False) -> OutputSpec:
    return OutputSpec(structure, shapes, (torch.float32,) * len(shapes), aliases_input)


def tensor(
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    *,
    offset: int = 0,
    region: Region = Region.OUTPUTS,
    dtype: int = FLOAT,
) -> TensorLayout:
    if strides is None:
        strides = tuple(torch.empty(shape, device="meta").stride())
    return TensorLayout(dtype, region, offset, shape, strides)


def called(*tensors: TensorLayout, structure: str = "T", call: int = 0) -> Called:
    return Called(call, 0, structure, tensors)


def verdict(described: Called, expected: OutputSpec, *, must_be_routed: bool = True) -> Verdict | None:
    refused = check_called(described, expected, must_be_routed)
    return None if refused is None else refused.verdict


@pytest.mark.parametrize(
    "honest",
    [
        tensor((4, 6)),
        tensor((4, 6), (1, 4)),  # transposed
        tensor((4, 6), (8, 1)),  # rows padded
        tensor((4, 6), (16, 2), offset=64),  # every other element
        tensor((4, 6), offset=ARENA_BYTES - 96),
    ],
)
def test_honest_layouts_are_accepted_and_read_right(honest: TensorLayout) -> None:
    assert check_called(called(honest), spec((4, 6)), must_be_routed=True) is None
    view = view_output(arena(), honest)
    assert view is not None
    rows = [honest.offset // 4 + i * honest.strides[0] + j * honest.strides[1] for i in range(4) for j in range(6)]
    assert view.reshape(-1).tolist() == rows


def test_scalars_and_outputs_of_one_element_are_read_right() -> None:
    for layout in (tensor((), offset=40), tensor((1, 1), (2**63 - 1, 2**62), offset=40)):
        assert check_called(called(layout), spec(layout.shape), must_be_routed=True) is None
        view = view_output(arena(), layout)
        assert view is not None
        assert (tuple(view.shape), view.sum().item()) == (layout.shape, 10.0)


def test_an_empty_output_needs_no_memory() -> None:
    layout = tensor((0, 6), (6, 1))
    assert check_called(called(layout), spec((0, 6)), must_be_routed=True) is None
    assert byte_span(layout) == (0, 0)
    view = view_output(arena(), layout)
    assert view is not None
    assert tuple(view.shape) == (0, 6)


@pytest.mark.parametrize(
    ("structure", "hint"),
    [("(T)", "expected the structure T, got (T)"), ("[T]", "[T]"), ("N", "got N"), ("?", "?"), ("S", "subclass")],
)
def test_another_nesting_is_refused_with_a_hint(structure: str, hint: str) -> None:
    refused = check_called(called(tensor((4,)), structure=structure), spec((4,)), must_be_routed=False)
    assert refused is not None
    assert refused.verdict is Verdict.INCORRECT_STRUCTURE
    assert hint in refused.text


def test_an_output_on_the_wrong_device_says_so() -> None:
    refused = check_called(called(tensor((4,)), structure="D"), spec((4,)), must_be_routed=False)
    assert refused is not None
    assert "wrong device" in refused.text


@pytest.mark.parametrize("count", [0, 2, 64])
def test_a_nesting_that_does_not_fit_the_number_of_tensors_is_refused(count: int) -> None:
    """Both are claims: a candidate may send one without the other."""
    assert verdict(called(*[tensor((4,))] * count), spec((4,))) is Verdict.INCORRECT_STRUCTURE


@pytest.mark.parametrize("shape", [(4, 5), (24,), (4, 6, 1), (6, 4), ()])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    refused = check_called(called(tensor(shape)), spec((4, 6)), must_be_routed=True)
    assert refused is not None
    assert refused.verdict is Verdict.INCORRECT_SHAPE
    assert refused.text == f"expected shape [4, 6], got {list(shape)}"


@pytest.mark.parametrize(("dtype", "name"), [(HALF, "float16"), (DOUBLE, "float64"), (OTHER_DTYPE, "another type")])
def test_another_type_is_refused(dtype: int, name: str) -> None:
    refused = check_called(called(tensor((4,), dtype=dtype)), spec((4,)), must_be_routed=True)
    assert refused is not None
    assert refused.verdict is Verdict.INCORRECT_DTYPE
    assert refused.text == f"expected float32, got {name}"


def test_the_text_names_which_of_several_outputs_is_wrong() -> None:
    described = called(tensor((4,)), tensor((5,), offset=64), structure="(T,T)")
    refused = check_called(described, spec((4,), (6,), structure="(T,T)"), must_be_routed=True)
    assert refused is not None
    assert refused.text.startswith("output 1: expected shape [6]")


@pytest.mark.parametrize("strides", [(0, 1), (1, 0), (0, 0), (5, 1), (1, 1), (1, 3), (6, 0)])
def test_elements_that_share_memory_are_refused(strides: tuple[int, int]) -> None:
    assert verdict(called(tensor((4, 6), strides)), spec((4, 6))) is Verdict.INCORRECT_STRUCTURE


def test_stride_zero_of_a_dimension_of_one_shares_nothing() -> None:
    assert verdict(called(tensor((1, 6), (0, 1))), spec((1, 6))) is None


def test_an_output_in_the_memory_of_an_input_is_refused_unless_the_reference_does_it() -> None:
    described = called(tensor((4,), region=Region.INPUTS))
    for must_be_routed in (True, False):
        assert verdict(described, spec((4,)), must_be_routed=must_be_routed) is Verdict.INCORRECT_ALIAS
    assert verdict(described, spec((4,), aliases_input=True)) is None


def test_memory_from_elsewhere_is_refused_once_outputs_are_routed() -> None:
    described = called(tensor((4,), region=Region.FOREIGN))
    assert verdict(described, spec((4,)), must_be_routed=True) is Verdict.INCORRECT_ALIAS
    assert verdict(described, spec((4,)), must_be_routed=False) is None


@pytest.mark.parametrize(
    "hostile",
    [
        tensor((4,), offset=ARENA_BYTES - 12),  # ends four bytes past the block
        tensor((4,), offset=ARENA_BYTES),
        tensor((4,), offset=2**63),
        tensor((4,), offset=2**64 - 4),  # would wrap around in 64 bits
        tensor((4,), (2**62,)),  # strides whose product wraps to zero
        tensor((4,), (2**63 - 1,)),
        tensor((2**62,), (1,)),
        tensor((4, 6), (ARENA_BYTES // 8, 1)),
        tensor((4,), offset=2),  # misaligned
        tensor((4,), offset=1),
        tensor((2,), offset=4, dtype=DOUBLE),
    ],
)
def test_a_layout_that_leaves_the_block_or_is_misaligned_has_no_view(hostile: TensorLayout) -> None:
    assert view_output(arena(), hostile) is None


def test_the_last_byte_of_the_block_may_be_used() -> None:
    view = view_output(arena(), tensor((1,), offset=ARENA_BYTES - 1, dtype=BYTE))
    assert view is not None
    assert tuple(view.shape) == (1,)


@pytest.mark.parametrize(
    ("layout", "span"),
    [
        (tensor((4, 6)), (0, 96)),
        (tensor((4, 6), (8, 1), offset=64), (64, 64 + (3 * 8 + 5 + 1) * 4)),
        (tensor((4, 6), (1, 4), dtype=HALF), (0, 48)),
        (tensor((), offset=8), (8, 12)),
        (tensor((2,), (2**63 - 1,)), (0, 2**65)),
    ],
)
def test_a_span_reaches_from_the_first_to_the_last_byte(layout: TensorLayout, span: tuple[int, int]) -> None:
    assert byte_span(layout) == span


NUMBERS = st.one_of(st.integers(0, 8), st.integers(0, 2**63 - 1))


@settings(max_examples=300, deadline=None)
@given(
    sizes=st.lists(NUMBERS, max_size=3),
    strides=st.lists(NUMBERS, min_size=3, max_size=3),
    offset=st.one_of(st.integers(0, ARENA_BYTES + 8), st.integers(0, 2**64 - 1)),
    dtype=st.sampled_from([FLOAT, HALF, BYTE, DOUBLE]),
)
def test_no_view_ever_reaches_beyond_the_block(sizes: list[int], strides: list[int], offset: int, dtype: int) -> None:
    layout = TensorLayout(dtype, Region.OUTPUTS, offset, tuple(sizes), tuple(strides[: len(sizes)]))
    block = arena()
    view = view_output(block, layout)
    start, end = byte_span(layout)
    if view is None:
        is_too_large = math.prod(filter(None, sizes)) * view_itemsize(dtype) > ARENA_BYTES
        assert end > ARENA_BYTES or start % view_itemsize(dtype) or is_too_large
        return
    if 0 in sizes:
        assert view.numel() == 0
        return
    assert 0 <= start < end <= ARENA_BYTES
    assert view.data_ptr() - block.data.data_ptr() == start
    assert tuple(view.shape) == tuple(sizes)


@pytest.mark.parametrize("shape", [(2**62, 2**62), (0, 2**62, 2**62), (2**63 - 1,)])
def test_sizes_that_overflow_are_no_view(shape: tuple[int, ...]) -> None:
    """torch raises for them, even with strides of zero, which reach nowhere."""
    assert view_output(arena(), TensorLayout(FLOAT, Region.OUTPUTS, 0, shape, (0,) * len(shape))) is None


def view_itemsize(dtype: int) -> int:
    return {FLOAT: 4, HALF: 2, BYTE: 1, DOUBLE: 8}[dtype]


def test_outputs_of_different_calls_may_not_overlap() -> None:
    first = called(tensor((16,)), call=0)
    assert not calls_share_memory([first, called(tensor((16,), offset=64), call=1)])
    assert calls_share_memory([first, called(tensor((16,), offset=60), call=1)])
    assert calls_share_memory([first, called(tensor((16,)), call=1)])


def test_a_short_output_inside_a_long_one_of_another_call_is_seen() -> None:
    long = called(tensor((100,)), call=0)
    apart = called(tensor((1,), offset=4), tensor((1,), offset=8), structure="(T,T)", call=0)
    assert calls_share_memory([long, apart, called(tensor((1,), offset=396), call=1)])
    assert not calls_share_memory([long, apart, called(tensor((1,), offset=400), call=1)])


def test_outputs_of_one_call_and_outputs_in_inputs_are_no_sharing_between_calls() -> None:
    twice = called(tensor((16,)), tensor((16,)), structure="(T,T)", call=0)
    assert not calls_share_memory([twice])
    alias = [called(tensor((16,), region=Region.INPUTS), call=i) for i in range(2)]
    assert not calls_share_memory(alias)
