"""Splits are a pure function of the operator."""

import pytest

from kernel_env.terms import Split
from server.tasks.splits import split_of


@pytest.mark.parametrize(
    ("task_id", "split"),
    [
        ("softmax", Split.EVAL),
        ("log_softmax", Split.EVAL),
        ("gelu", Split.EVAL),
        ("level1/23_Softmax", Split.EVAL),
        ("level1/24_LogSoftmax", Split.EVAL),
        ("level1/88_MinGPTNewGelu", Split.EVAL),
        ("level1/26_GELU_", Split.EVAL),
        ("relu", Split.TRAIN),
        ("level1/19_ReLU", Split.TRAIN),
        ("level1/20_LeakyReLU", Split.TRAIN),
        ("level1/21_Sigmoid", Split.TRAIN),
        ("level1/22_Tanh", Split.TRAIN),
        ("level1/25_Swish", Split.RESERVED),
        ("level1/28_HardSigmoid", Split.RESERVED),
        ("level1/32_HardTanh", Split.RESERVED),
        ("hard_tanh", Split.RESERVED),
    ],
)
def test_named_operators_have_their_split(task_id: str, split: Split) -> None:
    assert split_of(task_id) is split


@pytest.mark.parametrize(
    ("builtin", "kernelbench"),
    [
        ("matmul", "level1/1_Square_matrix_multiplication_"),
        ("layer_norm", "level1/40_LayerNorm"),
        ("rms_norm", "level1/36_RMSNorm_"),
        ("sum_reduce", "level1/47_Sum_reduction_over_a_dimension"),
        ("conv2d", "level1/63_conv_standard_2D__square_input__square_kernel"),
        ("leaky_relu", "20_LeakyReLU"),
    ],
)
def test_one_operator_has_one_split_under_every_name(builtin: str, kernelbench: str) -> None:
    assert split_of(builtin) is split_of(kernelbench)


def test_renumbering_moves_nothing() -> None:
    assert {split_of(f"level2/{number}_Gemm_Add_ReLU") for number in range(50)} == {split_of("Gemm_Add_ReLU")}


def test_about_one_operator_in_ten_is_held_out() -> None:
    held_out = sum(split_of(f"operator_{chr(97 + i // 26)}{chr(97 + i % 26)}") is Split.EVAL for i in range(26 * 26))
    assert 40 < held_out < 100
