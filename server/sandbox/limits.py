"""What one candidate may use of the host. Values only; both sides of the sandbox read them.

The kernel enforces what an rlimit can express (`confine`); the warden samples the rest and kills.
There is no limit on address space: the CUDA driver reserves a multiple of the device's memory there.
"""

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30

HOST_MEMORY_BYTES = 16 * GIB  # torch with a CUDA context is 2-4 GiB; one nvcc with torch's headers another 2
SCRATCH_BYTES = 4 * GIB  # a debug build of an extension with its intermediates stays under 1 GiB
SCRATCH_INODES = 20_000  # Triton writes about 10 files per kernel variant; autotuning makes hundreds of variants
LOG_BYTES = 8 * MIB  # feedback quotes a few kB; a full build log with warnings is under 1 MiB
PROCESSES = 1024  # threads count: two OpenMP pools on 128 cores, 20 CUDA threads and a parallel build fit
OPEN_FILES = 4096  # a CUDA context on an 8-GPU host holds a few hundred
FILE_BYTES = 2 * GIB  # largest single file: an object file with device code for all architectures is 100 MiB


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings of one candidate and all its descendants together, except where a field says otherwise."""

    host_memory_bytes: int = HOST_MEMORY_BYTES
    """Private memory, sampled. Memory that the judge shares with the candidate does not count."""

    scratch_bytes: int = SCRATCH_BYTES
    scratch_inodes: int = SCRATCH_INODES
    log_bytes: int = LOG_BYTES
    processes: int = PROCESSES
    """Tasks as the kernel counts them: every thread is one."""

    open_files: int = OPEN_FILES
    """Per process."""

    file_bytes: int = FILE_BYTES
    """Per file."""

    cpu_seconds: int | None = None
    """Per process; None leaves it to the deadline of the stage."""

    def __post_init__(self) -> None:
        """Refuse a limit that would stop every candidate.

        Raises:
            ValueError: A limit is not positive.
        """
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"limit {name} must be positive, got {value}")
