"""Precision contract read off a task's source."""

import ast

import pytest

from kernel_env.terms import Precision
from server.tasks.contract import precision_of


@pytest.mark.parametrize(
    ("code", "precision"),
    [
        ("y = torch.relu(x)", Precision.IEEE),
        ("y = torch.softmax(x, dim=1)", Precision.IEEE),
        ("y = a @ b", Precision.TF32),
        ("y @= b", Precision.TF32),
        ("y = torch.matmul(a, b)", Precision.TF32),
        ("y = a.bmm(b)", Precision.TF32),
        ("self.fc = nn.Linear(3, 4)", Precision.TF32),
        ("self.conv = nn.ConvTranspose3d(3, 4, 5)", Precision.TF32),
        ("y = F.conv2d(x, w)", Precision.TF32),
        ("from torch.nn import LSTM", Precision.TF32),
        ("y = F.scaled_dot_product_attention(q, k, v)", Precision.TF32),
        ("y = torch.einsum('ij,jk->ik', a, b)", Precision.TF32),
        ("y = (a.half() @ b.half())", Precision.LOWP),
        ("x = torch.randn(3, dtype=torch.bfloat16)", Precision.LOWP),
        ('"""A matmul in half precision, said in words only."""', Precision.IEEE),
        ("linear_text = 'nn.Linear'  # torch.matmul", Precision.IEEE),
    ],
)
def test_contract_follows_the_operations_used_as_code(code: str, precision: Precision) -> None:
    assert precision_of(ast.parse(code), "task.py") is precision


def test_declared_contract_wins_over_the_rule() -> None:
    assert precision_of(ast.parse("PRECISION = 'ieee'\ny = a @ b"), "task.py") is Precision.IEEE
