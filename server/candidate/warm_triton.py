"""Builds, once and before the fork, what Triton would build anew in every candidate. Trusted: runs in the zygote.

Triton compiles a C module that hands kernels to the driver, which takes 0.3 s, and up to version 3.6 one more per
signature of a kernel. It keeps them in a folder, and candidates share no folder; but a module that is loaded before the
fork is inherited. Loading it maps the library of the CUDA driver and initialises nothing.
"""

import logging
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

logger = logging.getLogger(__name__)

QUICK = "-O1"
"""These modules convert arguments. gcc takes half the time that Triton's own -O3, which this overrides, would take."""


def warm_triton(cache_dir: Path) -> None:
    """Build and load the module; where a version of Triton does it otherwise, candidates do it for themselves.

    Args:
        cache_dir: A folder of ours, in which files can be executed.
    """
    try:
        from triton.backends.nvidia import driver

        original = driver.compile_module_from_src
        built: dict[tuple[str, str], ModuleType] = {}

        def build_once(src: str, name: str, *, ccflags: list[str] | None = None, **options: Any) -> ModuleType:
            if (name, src) not in built:
                built[name, src] = original(src=src, name=name, ccflags=[*(ccflags or ()), QUICK], **options)
            return built[name, src]

        cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_dir) as folder:
            os.environ["TRITON_CACHE_DIR"] = folder
            try:
                driver.compile_module_from_src = build_once
                driver.CudaUtils()
            except BaseException:
                driver.compile_module_from_src = original
                raise
            finally:
                del os.environ["TRITON_CACHE_DIR"]
    except Exception as error:
        logger.warning("Triton's driver module is left to the candidates: %r", error)
