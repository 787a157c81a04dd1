"""Which tasks a server offers."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernel_env.terms import Language, Precision, Split
from server.errors import InvalidRequest
from server.tasks.pinned import PINNED_REVISION
from server.tasks.registry import load_tasks

PROVEN = [
    *("relu", "leaky_relu", "sigmoid", "tanh", "swish", "hard_sigmoid", "hard_tanh", "softmax", "log_softmax", "gelu"),
    *("layer_norm", "rms_norm", "sum_reduce", "matmul", "linear_gelu", "conv2d"),
]
SEVERAL_SIZES = [
    *("causal_attention", "grouped_query_attention", "sliding_window_attention", "decode_attention", "retention"),
    *("rope", "add_rms_norm", "rms_norm_backward", "layer_norm_fp16", "group_norm", "swiglu", "geglu_bf16"),
    *("moe_routing", "moe_combine", "grouped_gemm", "batched_matmul", "matmul_bf16", "int8_linear", "fp8_linear"),
    *("cross_entropy", "top_k", "cumsum", "softmax_bf16", "embedding_bag", "depthwise_conv2d", "causal_conv1d"),
    *("selective_scan", "adamw_step"),
]
BUILTIN = [*PROVEN, *SEVERAL_SIZES]

TASK = """import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


def kernelbench(root: Path) -> Path:
    for name in ("level1/19_ReLU", "level1/2_Matmul", "level2/7_Fused", "level4/1_gpt", "level3/1_Net"):
        path = root / "KernelBench" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TASK)
    (root / "KernelBench" / "changelog").mkdir()
    return root


def test_builtin_suite_is_whole() -> None:
    assert sorted(BUILTIN) == [task.task_id for task in load_tasks()]


def test_every_builtin_task_has_a_smaller_cpu_size() -> None:
    for task in load_tasks():
        assert task.source_for("cpu") != task.source_for("cuda")


@pytest.mark.parametrize("task_id", SEVERAL_SIZES)
def test_newer_tasks_are_judged_at_several_sizes_on_every_device(task_id: str) -> None:
    task = load_tasks().get(task_id)
    assert len(task.at_sizes("cuda")) == 3
    assert len(task.at_sizes("cpu")) == 2
    assert task.varying


def test_tasks_that_no_gpu_has_judged_are_reserved() -> None:
    for task in load_tasks():
        assert task.task_id in PROVEN or task.split is Split.RESERVED


def test_builtin_contracts_of_the_older_tasks() -> None:
    tf32 = {task.task_id for task in load_tasks() if task.precision is Precision.TF32 and task.task_id in PROVEN}
    assert tf32 == {"matmul", "linear_gelu", "conv2d"}


def test_types_of_sixteen_bits_and_fewer_are_lowp() -> None:
    for task in load_tasks():
        assert (task.precision is Precision.LOWP) == ("float16" in task.source), task.task_id


def test_level_of_a_builtin_task_is_that_of_its_header() -> None:
    levels = {task.task_id: task.level for task in load_tasks()}
    assert (levels["relu"], levels["linear_gelu"], levels["cumsum"], levels["swiglu"]) == (1, 2, 1, 2)


@pytest.mark.parametrize("below", ["", "KernelBench"])
def test_checkout_and_its_inner_folder_give_the_same_ids(tmp_path: Path, below: str) -> None:
    tasks = load_tasks(str(kernelbench(tmp_path) / below))
    ids = [task.task_id for task in tasks if task.origin != "builtin"]
    assert ids == ["level1/2_Matmul", "level1/19_ReLU", "level2/7_Fused", "level3/1_Net"]
    assert tasks.get("level2/7_Fused").level == 2


def test_level_4_is_skipped_with_a_reason(tmp_path: Path) -> None:
    tasks = load_tasks(str(kernelbench(tmp_path)))
    assert [skipped.task_id for skipped in tasks.skipped] == ["level4/1_gpt"]
    with pytest.raises(InvalidRequest, match="downloads"):
        tasks.get("level4/1_gpt")


@pytest.mark.parametrize("below", ["", "KernelBench"])
def test_revision_of_a_checkout_is_recorded(tmp_path: Path, below: str) -> None:
    root = kernelbench(tmp_path)
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text(PINNED_REVISION)
    tasks = load_tasks(str(root / below))
    assert tasks.revision == PINNED_REVISION
    assert tasks.is_pinned
    assert PINNED_REVISION[:12] in tasks.get("level1/19_ReLU").origin


def test_other_revision_is_not_the_pinned_one(tmp_path: Path) -> None:
    root = kernelbench(tmp_path)
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("a" * 40)
    assert not load_tasks(str(root)).is_pinned


def test_origin_is_no_path(tmp_path: Path) -> None:
    assert load_tasks(str(kernelbench(tmp_path))).get("level1/19_ReLU").origin == tmp_path.name


def test_plain_folder_uses_file_stems(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TASK)
    (tmp_path / "_draft.py").write_text("not Python at all (")
    tasks = load_tasks(str(tmp_path))
    assert tasks.get("mine").level == 1
    assert len(tasks) == len(BUILTIN) + 1


def test_id_of_a_builtin_task_cannot_be_taken(tmp_path: Path) -> None:
    (tmp_path / "relu.py").write_text(TASK)
    with pytest.raises(InvalidRequest, match=r"relu\.py.*built-in"):
        load_tasks(str(tmp_path))


def test_malformed_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(TASK.replace("get_init_inputs", "init"))
    with pytest.raises(InvalidRequest, match=r"half\.py.*get_init_inputs"):
        load_tasks(str(tmp_path))


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_folder_without_tasks_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidRequest, match=name):
        load_tasks(str(tmp_path / name))


def test_unknown_task_names_close_ones() -> None:
    with pytest.raises(InvalidRequest, match="leaky_relu"):
        load_tasks().get("leakyrelu")


def test_hostile_id_gives_a_short_refusal() -> None:
    with pytest.raises(InvalidRequest) as refused:
        load_tasks().get("\ud800../" * 100_000)
    assert len(str(refused.value)) < 400


def test_selection_keeps_the_order_and_fits_every_filter() -> None:
    tasks = load_tasks()
    chosen = tasks.select(split="train", level=1, language="triton")
    assert [task.task_id for task in tasks if task in chosen] == [task.task_id for task in chosen]
    assert {task.split for task in chosen} == {Split.TRAIN}
    assert {task.level for task in chosen} == {1}


def test_no_filter_selects_everything() -> None:
    tasks = load_tasks()
    assert tasks.select() == tuple(tasks)
    assert tasks.select(language=Language.CUDA) == tuple(tasks)


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"split": "test"}, "train, eval, reserved"),
        ({"language": "rust"}, "triton, cuda, cpp"),
        ({"level": 7}, "levels here: 1, 2"),
    ],
)
def test_selection_that_cannot_be_met_says_what_exists(filters: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        load_tasks().select(**filters)  # type: ignore[arg-type]


def test_loading_imports_no_torch() -> None:
    code = "import sys; from server.tasks.registry import load_tasks; load_tasks(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_commands_import_no_torch() -> None:
    """Nor a library that is optional: `lint --run` has a process of its own, a data set is read when it is named."""
    found = "{'torch', 'pyarrow', 'datasets'} & set(sys.modules)"
    code = f"import sys, server.tasks.commands; sys.exit(bool({found}))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
