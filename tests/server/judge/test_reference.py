"""The reference of a task: its parameters perturbed, its inputs laid out, its own noise measured, its limits named."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernel_env.terms import Precision
from server.candidate.runtime import decode_arguments, describe_structure
from server.judge import reference as reference_module
from server.judge.compare import BASE, compare
from server.judge.device import CpuDevice
from server.judge.distributions import Distribution, Draw
from server.judge.reference import Reference, ScalarArgument, TensorArgument, load_module, precision, random_seed
from server.judge.structures import UnsupportedTask, encode_argument, flatten, structure_of


def task(forward: str, inputs: str, *, init: str = "", arguments: str = "[]") -> str:
    """Source of a task without parameters."""
    return (
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        f"    def __init__(self{init}):\n        super().__init__()\n"
        f"    def forward(self, *a):\n        {forward}\n"
        f"def get_inputs():\n    {inputs}\n"
        f"def get_init_inputs():\n    return {arguments}\n"
    )


def build(source: str, contract: Precision = Precision.IEEE, *, free: bool = True) -> Reference:
    return Reference("a_task", source, contract, free, CpuDevice(1))


def test_arguments_are_laid_out_one_after_the_other() -> None:
    inputs = "return [torch.rand(3, 5), 7, torch.randint(9, (2,)), None, True, 'mean', torch.rand(())]"
    reference = build(task("return a[0] + a[6]", inputs))
    tensors = [a for a in reference.arguments if isinstance(a, TensorArgument)]
    scalars = [a.value for a in reference.arguments if isinstance(a, ScalarArgument)]
    assert [(a.shape, a.dtype, a.offset) for a in tensors] == [
        ((3, 5), torch.float32, 0),
        ((2,), torch.int64, 512),
        ((), torch.float32, 1024),
    ]
    assert scalars == [7, None, True, "mean"]
    assert reference.set_bytes == 1536
    assert (reference.input_bytes, reference.output_bytes) == (60 + 16 + 4, 60)


def test_what_a_task_states_about_itself_counts() -> None:
    source = task("return a[0] @ a[0]", "return [torch.rand(8, 8)]")
    counted, stated = build(source), build(f"n = 3\nFLOPS = 2 * n\nBYTES = n\nSTRUCTURED_INPUTS = True\n{source}")
    assert (counted.flops, counted.stated_bytes) == (2 * 8**3, None)
    assert (stated.flops, stated.stated_bytes) == (6, 3)
    assert len(counted.distributions) > 1
    assert stated.distributions == (Distribution.AS_GIVEN,)


@pytest.mark.parametrize("line", ["FLOPS = -1", "BYTES = float('nan')", "FLOPS = '7'", "BYTES = 1e999"])
def test_a_statement_that_is_no_number_is_refused(line: str) -> None:
    with pytest.raises(UnsupportedTask, match=f"{line[:5]} must be a number"):
        build(f"{line}\n{task('return a[0] + 1', 'return [torch.rand(8)]')}")


def test_the_same_draw_makes_the_same_inputs_and_leaves_integers_as_the_task_draws_them() -> None:
    reference = build(task("return a[0] * a[1]", "return [torch.rand(100), torch.randint(9, (100,))]"))
    draws = [Draw(5, Distribution.NORMAL), Draw(5, Distribution.AS_GIVEN), Draw(6, Distribution.NORMAL)]
    made = [reference.make_inputs(draw) for draw in (*draws, draws[0])]
    floats = [x for values in made for x in values[:1] if isinstance(x, Tensor)]
    labels = [x for values in made for x in values[1:] if isinstance(x, Tensor)]
    assert torch.equal(floats[0], floats[3])
    assert not torch.equal(floats[0], floats[2])
    assert float(floats[0].min()) < 0 <= float(floats[1].min())
    assert torch.equal(labels[0], labels[1])
    assert torch.equal(labels[0], labels[3])
    assert not torch.equal(labels[0], labels[2])
    assert 0 <= int(labels[0].min()) <= int(labels[0].max()) < 9


def test_structured_inputs_stay_as_the_task_draws_them() -> None:
    reference = build(task("return a[0].log()", "return [torch.rand(1000) + 0.1]"), free=False)
    assert reference.distributions == (Distribution.AS_GIVEN,)
    made = reference.make_inputs(Draw(5, Distribution.NORMAL))[0]
    assert isinstance(made, Tensor)
    assert float(made.min()) > 0


def test_a_view_returned_by_get_inputs_becomes_contiguous() -> None:
    reference = build(task("return a[0] + 1", "return [torch.rand(6, 4).T]"))
    made = reference.make_inputs(Draw(1, Distribution.UNIFORM))[0]
    assert isinstance(made, Tensor)
    assert made.is_contiguous()
    assert made.shape == (4, 6)


def test_floating_point_operations_of_a_product_are_counted() -> None:
    assert build(task("return a[0] @ a[1]", "return [torch.rand(8, 16), torch.rand(16, 4)]")).flops == 2 * 8 * 16 * 4


@pytest.mark.parametrize(
    ("forward", "aliases"), [("return a[0]", True), ("return a[0].view(-1)", True), ("return a[0] + 0", False)]
)
def test_a_reference_that_returns_its_input_is_known(forward: str, aliases: bool) -> None:
    assert build(task(forward, "return [torch.rand(6, 4)]")).output_spec.aliases_input is aliases


def test_the_output_is_described_with_its_nesting() -> None:
    spec = build(task("return a[0], [a[0].sum(), None], {'k': a[0].argmax()}", "return [torch.rand(6)]")).output_spec
    assert spec.structure == "(T,[T,N],{'k':T})"
    assert spec.shapes == ((6,), (), ())
    assert spec.dtypes == (torch.float32, torch.float32, torch.int64)


def test_only_finite_and_well_conditioned_distributions_are_used() -> None:
    """A logarithm has no value for the negative inputs of every distribution but the given one."""
    assert build(task("return a[0].log()", "return [torch.rand(4096) + 0.1]")).distributions == (Distribution.AS_GIVEN,)
    assert build(task("return a[0].relu()", "return [torch.rand(4096)]")).distributions == tuple(Distribution)


def test_values_that_are_not_finite_may_lie_where_the_inputs_of_the_task_put_them() -> None:
    """A row that is masked as a whole is NaN whatever the scores are; the mask is not redrawn."""
    masked = task(
        "return a[0].masked_fill(a[1], -torch.inf).softmax(1)",
        "m = torch.rand(64, 64) < 0.5; m[3] = True; return [torch.rand(64, 64), m]",
    )
    assert build(masked).distributions == tuple(Distribution)


def test_an_overflow_of_single_precision_is_no_value_to_compare_with() -> None:
    """exp(89) has no value in fp32 and one in fp64: sums in another order may have one there as well."""
    inputs = "return [torch.linspace(-89.0, 89.0, 64), torch.ones(2, dtype=torch.bool)]"
    assert Distribution.AS_GIVEN not in build(task("return a[0].exp()", inputs)).distributions


@pytest.mark.parametrize("contract", list(Precision))
@pytest.mark.parametrize(
    ("forward", "inputs"),
    [
        ("return a[0].relu()", "return [torch.rand(64, 64)]"),
        ("return a[0] @ a[1]", "return [torch.rand(64, 512), torch.rand(512, 64)]"),
        ("return a[0].cumsum(1)", "return [torch.rand(4, 20000)]"),
        ("return a[0].mean()", "return [torch.rand(300, 300)]"),
        ("return a[0] > 0", "return [torch.rand(64)]"),
        ("return a[0][:0]", "return [torch.rand(64)]"),
    ],
)
def test_calibration_widens_the_base_tolerance_and_lets_pytorch_pass(
    forward: str, inputs: str, contract: Precision
) -> None:
    reference = build(task(forward, inputs), contract)
    base, tolerance = BASE[contract], reference.tolerance
    assert (tolerance.rtol, tolerance.stol) == (base.rtol, base.stol)
    assert 1.0 <= tolerance.factor <= reference_module.MAX_FACTOR
    for distribution in reference.distributions:
        values = reference.make_inputs(Draw(99, distribution))
        exact = [x.double() if isinstance(x, Tensor) else x for x in values]
        for own, oracle in zip(reference.expected(values), reference.expected(exact), strict=True):
            assert compare(own, oracle.to(own.dtype), tolerance).is_right


@pytest.mark.parametrize("contract", list(Precision))
def test_noise_of_pytorchs_own_sets_the_factor(monkeypatch: pytest.MonkeyPatch, contract: Precision) -> None:
    monkeypatch.setattr(Reference, "_noise_ratio", lambda *_: 2.5)
    reference = build(task("return a[0]", "return [torch.rand(4)]"), contract)
    assert reference.tolerance.factor == reference_module.NOISE_MARGIN[contract] * 2.5


def test_an_ill_conditioned_distribution_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reference, "_noise_ratio", lambda _, draw, __: 100.0 if draw.distribution == "spiky" else 0.1)
    reference = build(task("return a[0]", "return [torch.rand(4)]"))
    assert reference.distributions == (Distribution.AS_GIVEN, Distribution.NORMAL, Distribution.UNIFORM)
    assert reference.tolerance.factor == 1.0


def test_an_operator_without_a_double_form_keeps_the_base_tolerance() -> None:
    forward = "x = a[0]; assert x.dtype is torch.float32 or (_ for _ in ()).throw(NotImplementedError('x')); return x"
    assert build(task(forward, "return [torch.rand(8)]")).tolerance.factor == 1.0


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("def broken(:\n", "the task's module does not run: SyntaxError"),
        ("import nothing_of_this_name\n", "does not run: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("import torch\n", "has no Model"),
        ("class Model: pass\n", "has no get_inputs"),
        (task("return a[0]", "return torch.rand(3)"), r"get_inputs\(\) must return a list"),
        (task("return a[0]", "return [torch.rand(3), object()]"), "an input is a object; tensors and scalars"),
        (task("return a[0]", "return [torch.zeros(3, dtype=torch.uint16)]"), "an input has the type torch.uint16"),
        (task("return a[0]", "raise ValueError('no data')"), r"get_inputs\(\) failed: ValueError: no data"),
        (task("return 3", "return [torch.rand(3)]"), "the reference returns a int"),
        (task("return a[0], 'x'", "return [torch.rand(3)]"), "the reference returns a str"),
        (task("return a[0] @ a[0][:2]", "return [torch.rand(3)]"), "Model.forward failed: RuntimeError"),
        (
            task("return a[0]", "return [torch.rand(3)]", init=", n"),
            r"Model\(\*get_init_inputs\(\)\) failed: TypeError",
        ),
        (task("return a[0] / 0", "return [torch.rand(3)]"), "not finite"),
    ],
)
def test_a_task_that_cannot_be_judged_says_why(source: str, text: str) -> None:
    with pytest.raises(UnsupportedTask, match=text):
        build(source)


def test_a_task_that_needs_more_memory_than_there_is_is_not_called_unsupported() -> None:
    with pytest.raises(MemoryError):
        build(task("raise MemoryError", "return [torch.rand(3)]"))


def test_a_module_is_loaded_without_becoming_importable() -> None:
    import sys

    module = load_module(task("return a[0]", "return []"), "level1/1_name")
    assert module.get_init_inputs() == []
    assert "level1/1_name" not in sys.modules


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2.5,
        "same",
        float("inf"),
        float("-inf"),
        [1, [2, (3, 4)], {"a": (None, 1.5)}],
        {"tuple": [1], "float": 2, "dict": {}},
        (),
        2**80,
    ],
)
def test_constructor_arguments_survive_the_way_to_the_candidate(value: object) -> None:
    import json

    encoded = json.loads(json.dumps([encode_argument(value)], allow_nan=False))
    decoded = decode_arguments(encoded)[0]
    assert decoded == value
    assert type(decoded) is type(value)


def test_not_a_number_survives_as_well() -> None:
    decoded = decode_arguments([encode_argument(float("nan"))])[0]
    assert decoded != decoded  # noqa: PLR0124 - only NaN differs from itself


@pytest.mark.parametrize("value", [object(), {1: 2}, {1, 2}, [torch.float32], b"x"])
def test_arguments_of_another_type_are_unsupported(value: object) -> None:
    with pytest.raises(UnsupportedTask, match=r"get_init_inputs\(\) holds a"):
        encode_argument(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t,
        lambda t: (t, t),
        lambda t: [t, (t, None)],
        lambda t: {"a": t, "b": [t]},
        lambda _: (),
        lambda t: (t,),
        lambda t: {"it's": t},
    ],
)
def test_both_sides_describe_a_structure_alike(make: Callable[[Tensor], object]) -> None:
    output = make(torch.zeros(1))
    leaves: list[Tensor] = []
    assert describe_structure(output, leaves) == structure_of(output)
    assert len(leaves) == len(flatten(output))


def test_products_are_strict_for_every_contract_but_one_and_settings_come_back() -> None:
    flags = torch.backends.cuda.matmul
    before = flags.allow_tf32
    for contract in Precision:
        with precision(contract):
            assert flags.allow_tf32 is (contract is Precision.TF32)
            assert torch.backends.cudnn.allow_tf32 is (contract is Precision.TF32)
    assert flags.allow_tf32 is before


def test_seeds_are_fresh_unless_a_source_is_given() -> None:
    import random

    assert random_seed() != random_seed()
    assert random_seed(random.Random(1)) == random_seed(random.Random(1))
    assert max(random_seed() for _ in range(50)).bit_length() > 57


def test_task_whose_inputs_do_not_fit_is_refused_before_they_are_made() -> None:
    """A terabyte: making it would end the host."""
    huge = task("return a[0]", "return [torch.rand(2**20, 2**18)]")
    with pytest.raises(UnsupportedTask, match=r"inputs take 1099\.5 GB"):
        build(huge)


def test_task_that_needs_real_values_to_make_its_inputs_is_not_refused_for_that() -> None:
    source = task("return a[0] + 1", "n = int(torch.ones(()).item()); return [torch.rand(3 * n, 5)]")
    assert build(source).set_bytes >= 60
