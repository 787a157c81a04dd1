"""A candidate's environment is made, not inherited."""

import pytest

from server.sandbox.environ import environment

HOST = {"PATH": "/usr/bin:.:bin", "CUDA_HOME": "/opt/cuda", "CC": "gcc-12", "TOKEN": "secret", "LD_PRELOAD": "/x.so"}


def test_only_named_variables_are_inherited() -> None:
    values = environment("/s", "cpu", cores=2, inherited=HOST)
    assert (values["CC"], values["CUDA_HOME"]) == ("gcc-12", "/opt/cuda")
    assert {"TOKEN", "LD_PRELOAD"}.isdisjoint(values)


def test_search_path_has_the_toolkit_and_nothing_relative() -> None:
    entries = environment("/s", "cpu", cores=2, inherited=HOST)["PATH"].split(":")
    assert "/opt/cuda/bin" in entries
    assert all(entry.startswith("/") for entry in entries)


def test_every_cache_lies_in_scratch() -> None:
    values = environment("/s", "cuda", cores=2, visible_device="0", inherited={})
    names = {name for name in values if name.endswith(("_DIR", "_HOME", "_PATH")) or name in {"HOME", "TMPDIR"}}
    assert {values[name].split("/")[1] for name in names} == {"s"}
    assert {"TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME"} <= names


def test_cuda_allocator_is_pinned_to_what_ipc_can_export() -> None:
    values = environment("/s", "cuda", cores=2, visible_device="GPU-1", inherited={})
    assert values["PYTORCH_ALLOC_CONF"] == "backend:native,expandable_segments:False"
    assert values["NVCC_APPEND_FLAGS"] == "-default-stream per-thread"
    assert values["CUDA_VISIBLE_DEVICES"] == "GPU-1"


def test_cpu_candidate_sees_no_device() -> None:
    assert environment("/s", "cpu", cores=2, inherited={})["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(("kind", "cores", "device"), [("tpu", 1, "0"), ("cuda", 1, None), ("cpu", 0, None)])
def test_impossible_environment_is_refused(kind: str, cores: int, device: str | None) -> None:
    with pytest.raises(ValueError, match=r"device|cores"):
        environment("/s", kind, cores=cores, visible_device=device, inherited={})
