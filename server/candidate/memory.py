"""Memory of the judge as a candidate sees it: inputs to read, and a block from which torch takes outputs.

Untrusted side. Both kinds offer the same four things: map a region, view a tensor in it, route allocations into the
output block, and say where a tensor lies.
"""

import ctypes
import gc
import mmap
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import torch

from ..protocol import Region


class Memory(Protocol):
    """Regions of one evaluation."""

    def open(self, region: Region, handle: str, fd: int, size: int) -> None:
        """Map `size` bytes of the judge's memory as `region`, replacing what was mapped there before."""

    def view(self, region: Region, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Contiguous tensor over the judge's memory."""

    def routed(self) -> AbstractContextManager[None]:
        """Context in which torch allocates from the output block."""

    def reset(self) -> None:
        """Forget what was allocated from the output block; nobody may use it any more."""

    def tidy(self, outputs: int) -> None:
        """Make room in the output block, of which `outputs` pieces are still needed. Not while anything is timed."""

    def locate(self, address: int) -> tuple[Region, int]:
        """Region and byte offset of an address."""

    def allocated_bytes(self) -> int:
        """Bytes allocated by torch since the process began."""


class _Spans:
    """Address ranges of the mapped regions."""

    def __init__(self) -> None:
        self.start: dict[Region, int] = {}
        self.size: dict[Region, int] = {}

    def locate(self, address: int) -> tuple[Region, int]:
        for region, start in self.start.items():
            if start <= address < start + self.size[region]:
                return region, address - start
        return Region.FOREIGN, 0


class CpuMemory:
    """Sealed memory files, mapped; outputs through an allocator installed in c10."""

    def __init__(self, library: Path) -> None:
        """Install the allocator. Call before the first tensor that matters."""
        self._spans = _Spans()
        self._bytes: dict[Region, torch.Tensor] = {}
        self._library = ctypes.CDLL(str(library))
        self._library.arena_open.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._library.arena_allocated.restype = ctypes.c_uint64
        self._library.arena_live.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._library.arena_live.restype = ctypes.c_size_t
        self._replaced: list[torch.Tensor] = []
        self._library.arena_install()

    def open(self, region: Region, handle: str, fd: int, size: int) -> None:
        """Map the file behind `fd`, with every page present: a page fault must not be timed."""
        if region in self._bytes:
            self._replaced.append(self._bytes[region])
        mapping = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self._bytes[region] = torch.frombuffer(mapping, dtype=torch.uint8)
        self._spans.start[region] = self._bytes[region].data_ptr()
        self._spans.size[region] = size

    def view(self, region: Region, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Contiguous tensor over the mapping."""
        count = torch.Size(shape).numel() * dtype.itemsize
        return self._bytes[region][offset : offset + count].view(dtype).view(shape)

    @contextmanager
    def routed(self) -> Iterator[None]:
        """Take allocations from the start of the output block on."""
        self._library.arena_open(self._spans.start[Region.OUTPUTS], self._spans.size[Region.OUTPUTS])
        try:
            yield
        finally:
            self._library.arena_close()

    def reset(self) -> None:
        """Unmap blocks that were replaced, but for those in which a workspace lies; every run starts at the beginning.

        A submission may keep a workspace that it made in a later call than the first, which is routed.
        """
        live = self._library.arena_live
        self._replaced = [block for block in self._replaced if live(block.data_ptr(), block.numel()) > 0]

    def tidy(self, outputs: int) -> None:
        """Collect garbage if more pieces are in use than outputs: Triton's interpreter leaves copies in cycles."""
        block = self._bytes[Region.OUTPUTS]
        if self._library.arena_live(block.data_ptr(), block.numel()) > outputs:
            gc.collect()

    def locate(self, address: int) -> tuple[Region, int]:
        """Region and byte offset of an address."""
        return self._spans.locate(address)

    def allocated_bytes(self) -> int:
        """Counted by the allocator itself."""
        return int(self._library.arena_allocated())


class CudaMemory:
    """Device memory imported through CUDA IPC; outputs through `torch.cuda.MemPool` over a pluggable allocator."""

    def __init__(self, library: Path) -> None:
        """Load the allocator. The CUDA context is created by the first use of the device, not here."""
        self._spans = _Spans()
        self._library = ctypes.CDLL(str(library))
        self._library.arena_open.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._allocator = torch.cuda.memory.CUDAPluggableAllocator(str(library), "arena_alloc", "arena_free")
        self._pool: torch.cuda.MemPool | None = None
        self._retired: list[torch.cuda.MemPool] = []

    def open(self, region: Region, handle: str, fd: int, size: int) -> None:
        """Import a block by its IPC handle, given in hexadecimal."""
        from cuda.bindings import runtime  # only with a GPU

        raw = runtime.cudaIpcMemHandle_t()
        raw.reserved = bytes.fromhex(handle)
        error, pointer = runtime.cudaIpcOpenMemHandle(raw, runtime.cudaIpcMemLazyEnablePeerAccess)
        if int(error) != 0:
            raise RuntimeError(f"cudaIpcOpenMemHandle: error {int(error)}")
        self._spans.start[region], self._spans.size[region] = int(pointer), size
        if region is Region.OUTPUTS:
            self.reset()

    def view(self, region: Region, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Contiguous tensor over the imported block."""
        count = torch.Size(shape).numel() * dtype.itemsize
        if count == 0:
            return torch.empty(shape, dtype=dtype, device="cuda")
        holder = _CudaBytes(self._spans.start[region] + offset, count)
        return torch.as_tensor(holder, device="cuda").view(dtype).view(shape)

    @contextmanager
    def routed(self) -> Iterator[None]:
        """Take allocations from the output block; what earlier calls left free there is used again."""
        if self._pool is None:
            self._pool = self.new_pool()
        with torch.cuda.use_mem_pool(self._pool):
            yield

    def new_pool(self) -> torch.cuda.MemPool:
        """Pool that shares memory with no other: a captured call must not scribble over the output of another one."""
        pool = torch.cuda.MemPool(self._allocator.allocator())  # type: ignore[no-untyped-call]
        self._retired.append(pool)  # a pool that is collected gives its memory back while graphs still use it
        return pool

    def reset(self) -> None:
        """Start at the beginning of the block again, with new pools."""
        torch.cuda.synchronize()
        self._pool = None
        self._retired.clear()
        self._library.arena_open(self._spans.start[Region.OUTPUTS], self._spans.size[Region.OUTPUTS])

    def tidy(self, outputs: int) -> None:
        """Nothing to do: the pool uses again what is free."""

    def locate(self, address: int) -> tuple[Region, int]:
        """Region and byte offset of an address."""
        return self._spans.locate(address)

    def allocated_bytes(self) -> int:
        """Counted by torch's caching allocator."""
        return int(torch.cuda.memory_stats().get("allocated_bytes.all.allocated", 0))


class _CudaBytes:
    """Device bytes as torch can adopt them."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }
