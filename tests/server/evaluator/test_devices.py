"""Which devices a host has, from its device nodes alone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from server.errors import EvaluatorError
from server.evaluator import devices
from server.evaluator.devices import candidate_devices, find_devices

Host = Callable[..., None]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Gives this machine other device nodes."""

    def make(*names: str) -> None:
        for name in names:
            (tmp_path / name).touch()
        monkeypatch.setattr(devices, "Path", lambda _: tmp_path)
        monkeypatch.setattr(devices, "CONTROL_NODES", (str(tmp_path / "nvidiactl"), str(tmp_path / "nvidia-uvm")))

    return make


def test_a_host_without_a_gpu_has_the_cpu(host: Host) -> None:
    host("null", "nvidia-caps")
    assert find_devices(()) == ("cpu",)
    assert find_devices(("cpu",)) == ("cpu",)


def test_a_host_with_gpus_uses_all_of_them_in_order(host: Host) -> None:
    host("nvidiactl", "nvidia-uvm", "nvidia-modeset", *(f"nvidia{n}" for n in (0, 10, 2, 1)))
    assert find_devices(()) == ("cuda:0", "cuda:1", "cuda:2", "cuda:3")


def test_gpus_without_the_control_node_cannot_be_used(host: Host) -> None:
    host("nvidia0")
    assert find_devices(()) == ("cpu",)


def test_only_what_is_wanted_is_used_in_the_order_asked_for(host: Host) -> None:
    host("nvidiactl", "nvidia0", "nvidia1", "nvidia2")
    assert find_devices(("cuda:2", "cuda:0")) == ("cuda:2", "cuda:0")
    assert find_devices(("cpu",)) == ("cpu",)


def test_a_wanted_gpu_that_is_not_there_is_an_error_that_lists_what_is(host: Host) -> None:
    host("nvidiactl", "nvidia0")
    with pytest.raises(EvaluatorError, match="no device cuda:1; this host has: cuda:0, and cpu"):
        find_devices(("cuda:0", "cuda:1"))


def test_an_unknown_kind_is_an_error(host: Host) -> None:
    host()
    with pytest.raises(EvaluatorError, match="no device tpu:0; this host has: none, and cpu"):
        find_devices(("tpu:0",))


def test_a_candidate_may_open_its_own_gpu_and_the_control_nodes(host: Host, tmp_path: Path) -> None:
    """Of eight GPUs a container may see two, under the host's numbers; CUDA counts them from zero."""
    host("nvidiactl", "nvidia-uvm", "nvidia3", "nvidia5")
    control = (str(tmp_path / "nvidiactl"), str(tmp_path / "nvidia-uvm"))
    assert candidate_devices("cuda:0") == (*control, "/dev/nvidia3")
    assert candidate_devices("cuda:1") == (*control, "/dev/nvidia5")


def test_a_candidate_on_the_cpu_may_open_no_device(host: Host) -> None:
    host("nvidiactl", "nvidia0")
    assert candidate_devices("cpu") == ()
