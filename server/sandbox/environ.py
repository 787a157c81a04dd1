"""The environment variables of a candidate: nothing is inherited but what is named here. Trusted code.

Covered: tokens and settings of the server never reach a candidate through `os.environ` or its children.
Not covered: what the zygote's own memory holds. Start the zygote itself with `environment(...)`, since a fork copies
the block that the zygote was started with.
"""

import os
import sys
from collections.abc import Mapping

INHERITED = (
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CC",
    "CXX",
    "CUDAHOSTCXX",
    "TRITON_LIBCUDA_PATH",
    "TRITON_PTXAS_PATH",
)
"""Where the host keeps its compilers and drivers. None of them is a secret on a sane host."""

FALLBACK_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment(
    scratch: str,
    device_kind: str,
    *,
    cores: int,
    visible_device: str | None = None,
    inherited: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Environment of a candidate whose every cache lies in its scratch directory.

    Args:
        device_kind: `cuda` or `cpu`.
        cores: Threads of one parallel region, and compilers at a time.
        visible_device: What `CUDA_VISIBLE_DEVICES` shows: an index or a UUID. Needed on `cuda`.
        inherited: Where the variables in `INHERITED` and PATH come from; the process's own environment by default.
    Raises:
        ValueError: An unknown device kind, `cuda` without a device, or no core.
    """
    if device_kind not in {"cuda", "cpu"}:
        raise ValueError(f"device kind must be cuda or cpu, got {device_kind}")
    if device_kind == "cuda" and not visible_device:
        raise ValueError("a cuda candidate needs a visible device")
    if cores < 1:
        raise ValueError(f"cores must be positive, got {cores}")
    source = os.environ if inherited is None else inherited
    values = {name: source[name] for name in INHERITED if source.get(name)}
    values |= {
        "PATH": _search_path(source),
        "LANG": "C.UTF-8",
        # Caches of torch ask for a user name, and a slot's uid has no entry in the password file.
        "USER": "candidate",
        "LOGNAME": "candidate",
        "HOME": scratch,
        "TMPDIR": f"{scratch}/tmp",  # noqa: S108 a private one
        "XDG_CACHE_HOME": f"{scratch}/cache",
        "TRITON_CACHE_DIR": f"{scratch}/triton",
        "TRITON_HOME": scratch,
        "TORCH_EXTENSIONS_DIR": f"{scratch}/extensions",
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
        "PYTORCH_KERNEL_CACHE_PATH": f"{scratch}/cache/kernels",
        "CUDA_CACHE_PATH": f"{scratch}/cuda",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        # PyTorch's profiler, with which operators are recorded, would report itself in the submission's output.
        "KINETO_LOG_LEVEL": "99",
        "OMP_NUM_THREADS": str(cores),
        "MAX_JOBS": str(cores),
        "CUDA_VISIBLE_DEVICES": visible_device or "",
    }
    if device_kind == "cpu":
        values["TRITON_INTERPRET"] = "1"  # read when a kernel is decorated
    else:
        values |= {
            # CUDA IPC cannot export memory of the asynchronous or the expandable allocator.
            "PYTORCH_ALLOC_CONF": "backend:native,expandable_segments:False",
            # A launch without a stream must land on the stream that is captured, not on the legacy default stream.
            "NVCC_APPEND_FLAGS": "-default-stream per-thread",
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }
    return values


def _search_path(source: Mapping[str, str]) -> str:
    """PATH with the interpreter's own tools (ninja) first and the CUDA compiler last, without duplicates."""
    entries = [os.path.join(sys.prefix, "bin"), *source.get("PATH", FALLBACK_PATH).split(":")]
    entries += [f"{source[name]}/bin" for name in ("CUDA_HOME", "CUDA_PATH") if source.get(name)]
    # A relative entry would be looked up in the scratch directory, where the candidate decides what `gcc` is.
    return ":".join(dict.fromkeys(entry for entry in entries if entry.startswith("/")))
