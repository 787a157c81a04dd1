"""The judge's hold on one device: memory it owns and exports, synchronisation, and whether anybody else is running.

Trusted. Exported memory is cut in pieces of 2 MiB and holds nothing but inputs, or nothing but outputs: CUDA IPC
exports the whole underlying block, so anything that shared it would be readable by a candidate.
"""

import fcntl
import mmap
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from .watch import NoWatch, Watch

PIECE_BYTES = 2 << 20

F_ADD_SEALS = 1033
SEALS = 0x0001 | 0x0002 | 0x0004
"""F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW: a file the candidate could truncate would kill the judge by SIGBUS."""


@dataclass(frozen=True, slots=True)
class Arena:
    """One exported block. `handle` or `fd` lets a candidate map it."""

    data: torch.Tensor
    """All bytes of it, uint8."""

    size: int
    handle: str = ""
    fd: int = -1
    address: int = 0


class Device(Protocol):
    """One device of one kind."""

    kind: str
    torch_device: torch.device
    name: str
    is_asynchronous: bool
    """Whether work may go on when the process that submitted it is stopped."""

    def allocate(self, size: int) -> Arena:
        """New exported block of at least `size` bytes, in whole pieces."""

    def free(self, arena: Arena) -> None:
        """Give the block back. Whoever mapped it must be gone."""

    def synchronize(self) -> None:
        """Wait for everything this process submitted, a watch aside."""

    def free_bytes(self) -> int:
        """Memory an evaluation may plan with."""

    def is_idle(self) -> bool:
        """Whether nobody else runs on the device now. Always true where stopping processes stops the work."""

    def watch(self) -> Watch:
        """Begin to look whether anybody else uses the device; until its end, nothing may wait for the whole device."""

    def clocks(self) -> dict[str, float]:
        """How fast it runs at the moment, MHz by name; empty where nobody tells."""

    def last_level_cache_bytes(self) -> int:
        """Working sets below this may be served from cache."""


def round_up(size: int, piece: int = PIECE_BYTES) -> int:
    """Least multiple of `piece` that holds `size`, at least one piece."""
    return max(1, -(-size // piece)) * piece


class CpuDevice:
    """The host. Memory is a sealed memory file; a stopped process is really stopped."""

    kind = "cpu"
    is_asynchronous = False

    def __init__(self, threads: int) -> None:
        """Use `threads` threads for the reference, as many as a candidate gets."""
        torch.set_num_threads(threads)
        self.torch_device = torch.device("cpu")
        self.name = _cpu_name()

    def allocate(self, size: int) -> Arena:
        """Sealed memory file, pages present."""
        size = round_up(size)
        fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
        mapping = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        return Arena(torch.frombuffer(mapping, dtype=torch.uint8), size, fd=fd)

    def free(self, arena: Arena) -> None:
        """Close the file; the mapping goes with its last tensor."""
        os.close(arena.fd)

    def synchronize(self) -> None:
        """Nothing is asynchronous here."""

    def free_bytes(self) -> int:
        """A quarter of what the host has available: other evaluations and the server live there too."""
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024 // 4
        return 1 << 30

    def is_idle(self) -> bool:
        """Stopping processes stops their work."""
        return True

    def watch(self) -> Watch:
        """Likewise."""
        return NoWatch()

    def clocks(self) -> dict[str, float]:
        """The fastest core's."""
        speeds = [
            float(line.split(":", 1)[1])
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("cpu MHz")
        ]
        return {"cpu": max(speeds)} if speeds else {}

    def last_level_cache_bytes(self) -> int:
        """Largest cache the kernel reports, 32 MiB where it reports none."""
        sizes = [32 << 10]
        for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
            text = path.read_text().strip()
            unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
            sizes.append(int(text.rstrip("KMG")) * unit)
        return max(sizes)


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


class CudaDevice:
    """One NVIDIA GPU."""

    kind = "cuda"
    is_asynchronous = True

    PROBES = 6
    """Probes per look, spread over more than two time slices of the driver (2 ms each)."""

    PROBE_GAP_S = 0.0008

    def __init__(self, index: int) -> None:
        """Create the context.

        Raises:
            RuntimeError: No such device, or its driver cannot be used.
        """
        from cuda.bindings import runtime  # only with a GPU

        from .watchman import Watchman

        self._runtime = runtime
        self.torch_device = torch.device("cuda", index)
        torch.cuda.set_device(index)
        self.name = torch.cuda.get_device_name(index)
        self._probe = torch.zeros(1 << 20, device=self.torch_device)
        self._probe_limit_s = 10 * self._time_probes()
        self._watchman = Watchman(self.torch_device)

    def allocate(self, size: int) -> Arena:
        """Block of its own from cudaMalloc, exported by CUDA IPC.

        Raises:
            MemoryError: The device has not that much free.
        """
        size = round_up(size)
        error, pointer = self._runtime.cudaMalloc(size)
        if int(error) != 0:
            torch.cuda.empty_cache()
            error, pointer = self._runtime.cudaMalloc(size)
        if int(error) != 0:
            raise MemoryError(f"cudaMalloc of {size} bytes: error {int(error)}")
        error, handle = self._runtime.cudaIpcGetMemHandle(pointer)
        if int(error) != 0:
            self._runtime.cudaFree(pointer)
            raise RuntimeError(f"cudaIpcGetMemHandle: error {int(error)}")
        data = torch.as_tensor(_CudaBytes(int(pointer), size), device=self.torch_device)
        return Arena(data, size, handle=bytes(handle.reserved).hex(), address=int(pointer))

    def free(self, arena: Arena) -> None:
        """Back to the driver."""
        self._runtime.cudaFree(arena.address)

    def synchronize(self) -> None:
        """Wait for this process's work, all of which is on one stream, the kernel that stands watch aside."""
        torch.cuda.current_stream(self.torch_device).synchronize()

    def free_bytes(self) -> int:
        """Free device memory, torch's cache given back first."""
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info(self.torch_device)[0]

    def is_idle(self) -> bool:
        """Probe: a tiny kernel takes 20 us alone, and up to a time slice when another context is running."""
        return self._time_probes() <= self._probe_limit_s

    def watch(self) -> Watch:
        """Resident kernel that sees its own clock jump when somebody else had the device."""
        return self._watchman.watch()

    def clocks(self) -> dict[str, float]:
        """Of the multiprocessors and of the memory, by the driver's management library."""
        try:
            import pynvml
        except ImportError:  # a host that keeps its own packages judges all the same
            return {}
        uuid = torch.cuda.get_device_properties(self.torch_device).uuid
        kinds = {"sm": pynvml.NVML_CLOCK_SM, "memory": pynvml.NVML_CLOCK_MEM}
        try:
            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
            return {name: float(pynvml.nvmlDeviceGetClockInfo(handle, kind)) for name, kind in kinds.items()}
        except pynvml.NVMLError:
            return {}

    def last_level_cache_bytes(self) -> int:
        """L2 size."""
        return int(torch.cuda.get_device_properties(self.torch_device).L2_cache_size)

    def _time_probes(self) -> float:
        """Second longest of several probes, seconds: one alone may be a hiccup of the host."""
        times = []
        for _ in range(self.PROBES):
            self.synchronize()
            start = time.perf_counter_ns()
            self._probe.fill_(1.0)
            self.synchronize()
            times.append((time.perf_counter_ns() - start) * 1e-9)
            time.sleep(self.PROBE_GAP_S)
        return sorted(times)[-2]


class _CudaBytes:
    """Device bytes as torch can adopt them."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3}


def open_device(gpu_id: str, threads: int) -> Device:
    """Device by its id, `cpu` or `cuda:N`."""
    if gpu_id == "cpu":
        return CpuDevice(threads)
    return CudaDevice(int(gpu_id.removeprefix("cuda:")))
