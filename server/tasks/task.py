"""A task: the reference module an agent has to beat, and the promises that go with it. Knows no device and no torch."""

from dataclasses import dataclass, replace

from kernel_env.terms import Language, Precision, Split


@dataclass(frozen=True, slots=True)
class Task:
    """One KernelBench-format task. Trusted: its source is ours or the operator's, never an agent's."""

    task_id: str
    """`relu` for a built-in task, `level1/19_ReLU` for one of a KernelBench checkout."""

    level: int
    """KernelBench level: 1 single operator, 2 fused, 3 network."""

    split: Split
    precision: Precision
    source: str
    """Python source in KernelBench's format, at the size used on a GPU."""

    cpu_source: str | None = None
    """The same module at the smaller size used on the CPU device; None: `source` is used there as well."""

    origin: str = "builtin"
    """Where it comes from: `builtin`, or the name of the folder with its revision if known. Never a path."""

    floor_validated: bool = False
    """True once no honest program was found to be faster than the roofline of this task."""

    more_sources: tuple[str, ...] = ()
    """Further sizes at which a submission is judged on a GPU; hidden from the agent."""

    more_cpu_sources: tuple[str, ...] = ()
    """The same on the CPU device."""

    varying: tuple[str, ...] = ()
    """Names of the constants that differ between the sizes."""

    def at_sizes(self, device_kind: str) -> tuple["Task", ...]:
        """A task of one size for each size judged on `device_kind`, the one the agent sees first."""
        more = self.more_cpu_sources if device_kind == "cpu" else self.more_sources
        if not more:
            return (self,)
        return tuple(
            replace(self, source=source, cpu_source=None, more_sources=(), more_cpu_sources=(), varying=())
            for source in (self.source_for(device_kind), *more)
        )

    def source_for(self, device_kind: str) -> str:
        """Source at the size for `device_kind`, which is `cuda` or `cpu`."""
        if device_kind == "cpu" and self.cpu_source is not None:
            return self.cpu_source
        return self.source


def languages_for(device_kind: str) -> tuple[Language, ...]:
    """Languages that `device_kind` (`cuda` or `cpu`) offers, the default one first."""
    if device_kind == "cuda":
        return (Language.TRITON, Language.CUDA)
    return (Language.CPP, Language.TRITON)
