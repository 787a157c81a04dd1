"""What of a reply is taken as the submission."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_env.terms import Language
from server.evaluator.submission_text import detect_language, extract

MODULE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
OTHER = "print(1)\n"
CPU = (Language.CPP, Language.TRITON)
CUDA = (Language.TRITON, Language.CUDA)


def fenced(code: str, label: str = "python", fence: str = "```") -> str:
    return f"{fence}{label}\n{code}{fence}\n"


def test_bare_module_is_taken_as_it_is() -> None:
    assert extract(MODULE) == MODULE


@pytest.mark.parametrize("label", ["python", "py", "Python", "triton", "", "python3 title=a.py", "{.python}"])
def test_one_block_is_taken_out_of_prose(label: str) -> None:
    assert extract(f"Here it is:\n\n{fenced(MODULE, label)}\nIt is fast.") == MODULE


@pytest.mark.parametrize("fence", ["````", "~~~"])
def test_other_fences_are_known(fence: str) -> None:
    assert extract(fenced(MODULE, fence=fence)) == MODULE


def test_last_python_block_is_taken() -> None:
    old = MODULE.replace("pass", "old = 1")
    assert extract(f"{fenced(old)}No, better:\n{fenced(MODULE)}Build:\n{fenced('make', 'bash')}") == MODULE


def test_block_with_the_entry_point_is_preferred() -> None:
    assert extract(fenced(MODULE) + "Try it:\n" + fenced(OTHER)) == MODULE


def test_block_in_another_language_is_taken_when_it_is_the_only_one() -> None:
    assert extract(fenced(MODULE, "cpp")) == MODULE


def test_unclosed_fence_reaches_to_the_end() -> None:
    assert extract("Reply:\n```python\n" + MODULE).rstrip() == MODULE.rstrip()


def test_fence_inside_a_docstring_of_a_bare_module_is_no_fence() -> None:
    module = f'import torch\n\n\ndef f():\n    """Usage:\n\n```python\n{OTHER}```\n    """\n'
    assert extract(module) == module


def test_indented_fence_inside_a_block_does_not_close_it() -> None:
    module = MODULE + 'def f():\n    """\n    ```\n    x\n    ```\n    """\n'
    assert extract(fenced(module)) == module


def test_indented_block_loses_its_indent() -> None:
    indented = "".join(f"  {line}\n" if line else "\n" for line in fenced(MODULE).splitlines())
    assert extract("1. Reply:\n" + indented) == MODULE


def test_byte_order_mark_and_carriage_returns_are_removed() -> None:
    assert extract("\ufeff" + MODULE.replace("\n", "\r\n")) == MODULE
    assert extract(MODULE.replace("\n", "\r")) == MODULE


@pytest.mark.parametrize("code", ["", "```", "```\n```", "\0", "\ud800", "```python\n\ud800\0\n```", "`" * 100_000])
def test_odd_text_gives_text(code: str) -> None:
    assert isinstance(extract(code), str)


@given(st.text(alphabet=st.sampled_from("`~\n\r \ufeff\ud800\0abpython"), max_size=200))
@settings(max_examples=200, deadline=None)
def test_it_never_raises(code: str) -> None:
    assert detect_language(extract(code), CPU, Language.CPP) in CPU


@pytest.mark.parametrize(
    ("code", "offered", "language"),
    [
        ("import triton\n", CUDA, Language.TRITON),
        ("from triton import language as tl\n", CPU, Language.TRITON),
        ("load_inline(cuda_sources=SOURCE)", CUDA, Language.CUDA),
        ('SOURCE = "__global__ void f()"', CUDA, Language.CUDA),
        ("from kernel_env import native\n", CPU, Language.CPP),
        ("load_inline(cpp_sources=SOURCE)", CPU, Language.CPP),
    ],
)
def test_language_is_read_off_the_code(code: str, offered: tuple[Language, ...], language: Language) -> None:
    for default in offered:
        assert detect_language(code, offered, default) is language


@pytest.mark.parametrize("code", ["x = 1", "# triton is nice\n", "import triton\nSOURCE = '__global__'"])
def test_code_that_shows_none_or_several_languages_takes_the_default(code: str) -> None:
    assert detect_language(code, CUDA, Language.CUDA) is Language.CUDA


def test_language_that_is_not_offered_is_not_detected() -> None:
    assert detect_language("SOURCE = '__global__'", CPU, Language.CPP) is Language.CPP
