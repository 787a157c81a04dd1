"""Which operators of PyTorch a call runs, however they are spelled in its source. Untrusted side: a claim."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class OperatorRecord(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Context that collects the names of the operators dispatched in it, `aten.add.Tensor` and the like."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def around(self, call: Callable[[int], object]) -> Callable[[int], object]:
        """`call`, recorded."""

        def recorded(index: int) -> object:
            with self:
                return call(index)

        return recorded

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Do not shield the hook from torch.compile: that alone imports the whole compiler, which takes a second."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note the name, then run the operator."""
        self.names.add(str(func))
        return func(*args, **(kwargs or {}))
