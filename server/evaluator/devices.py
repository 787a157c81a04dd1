"""Which devices this host has, found without opening CUDA in the server's process."""

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import EvaluatorError

CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")


def find_devices(wanted: Sequence[str]) -> tuple[str, ...]:
    """Devices to use: those wanted, else every GPU with a device node, else the CPU.

    `cpu:0,cpu:1` are the CPU under several names, each with a judge and a queue of its own, for tests of what many
    devices need. They share the cores, so their times mean little.

    Raises:
        EvaluatorError: A wanted GPU has no device node.
    """
    present = tuple(f"cuda:{n}" for n in sorted(_gpu_numbers()))
    if not wanted:
        return present or ("cpu",)
    for gpu_id in wanted:
        if kind_of(gpu_id) != "cpu" and gpu_id not in present:
            known = ", ".join(present) or "none"
            raise EvaluatorError(f"there is no device {gpu_id}; this host has: {known}, and cpu")
    return tuple(wanted)


def kind_of(gpu_id: str) -> str:
    """`cuda` or `cpu`."""
    return gpu_id.partition(":")[0]


def candidate_devices(gpu_id: str) -> tuple[str, ...]:
    """Device nodes a candidate on `gpu_id` may open: its own GPU, never another one."""
    if kind_of(gpu_id) == "cpu":
        return ()
    return (*CONTROL_NODES, f"/dev/nvidia{_node_number(int(gpu_id.removeprefix('cuda:')))}")


def _gpu_numbers() -> range:
    """CUDA's indices: as many as there are device nodes, numbered from 0 in PCI order."""
    return range(len(_node_numbers()))


def _node_numbers() -> list[int]:
    names = (path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*"))
    nodes = sorted(int(name) for name in names if name.isdigit())
    return nodes if os.access(CONTROL_NODES[0], os.F_OK) else []


def _node_number(index: int) -> int:
    """Device node of CUDA's index. In a container a few of the host's nodes may be present, under their own numbers."""
    return _node_numbers()[index]
