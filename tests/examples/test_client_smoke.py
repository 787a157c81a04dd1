"""The smoke client against a server with a scripted evaluator: what it submits, prints and exits with."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_env.terms import Verdict
from server.evaluator.interface import DeviceInfo
from server.testing import FakeEvaluator, failed, passed
from tests.serving import serving

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def smoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs the program in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(url: str, *arguments: str) -> None:
        monkeypatch.setattr("sys.argv", ["client_smoke.py", "--url", url, *arguments])
        runpy.run_path(str(EXAMPLES / "client_smoke.py"), run_name="__main__")

    return run


@pytest.mark.parametrize(
    ("gpu_id", "kind", "file"), [("cuda:0", "cuda", "relu_triton.py"), ("cpu", "cpu", "relu_cpp.py")]
)
def test_the_kernel_for_the_device_is_submitted_and_the_prompt_saved(
    smoke: Callable[..., None], capsys: pytest.CaptureFixture[str], gpu_id: str, kind: str, file: str
) -> None:
    evaluator = FakeEvaluator([passed()], device=DeviceInfo(gpu_id, kind, "fake"))
    with serving(evaluator) as url:
        smoke(url)
    out = capsys.readouterr().out
    assert "verdict            passed" in out
    assert "speedup            2" in out
    assert "ModelNew" in Path("task_prompt.txt").read_text()
    assert evaluator.calls[0].code == (EXAMPLES / "kernels" / file).read_text()
    assert evaluator.calls[0].language.value in file


def test_a_kernel_of_a_kernelbench_task_is_found_by_its_operator() -> None:
    names = runpy.run_path(str(EXAMPLES / "client_smoke.py"))
    assert names["kernel_for"]("level1/19_ReLU", "cuda:0").name == "relu_triton.py"
    assert names["kernel_for"]("layer_norm", "cpu").name == "layer_norm_cpp.py"


def test_anything_but_a_pass_exits_with_a_reason(smoke: Callable[..., None]) -> None:
    with serving(FakeEvaluator([failed(Verdict.INCORRECT_VALUE, feedback="row 3 differs")])) as url:
        with pytest.raises(SystemExit, match=r"got incorrect_value\nrow 3 differs"):
            smoke(url)
        with pytest.raises(SystemExit, match="no kernel for task 'conv2d'"):
            smoke(url, "--task", "conv2d")
        with pytest.raises(SystemExit, match="did you mean"):
            smoke(url, "--task", "relo")
    with pytest.raises(SystemExit, match="cannot connect"):
        smoke(url)
