"""Makes K calls of a module repeatable: a CUDA graph per call and their composition, or a loop. Untrusted side.

Each call is captured as a graph of its own, so that the judge can ask for any single one: work batched over calls then
shows, because the call that was not asked for changes its output. The timed run is one launch of all of them chained.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from ..protocol import Failure, Plan
from .loading import CandidateFailure
from .memory import CudaMemory, Memory

Call = Callable[[int], object]
"""Runs the module on input set i and returns what `forward` returned."""


class Replay(Protocol):
    """K prepared calls."""

    calls: int

    def run(self, plan: int) -> None:
        """Run the calls of `plan` and wait for them."""

    def outputs(self) -> list[tuple[int, object]]:
        """Input set and output of each call of the last run, or of every call where memory is fixed."""


class EagerReplay:
    """A Python loop; outputs of the last run are kept so that each has memory of its own."""

    def __init__(self, call: Call, order: Sequence[int], memory: Memory, synchronize: Callable[[], None]) -> None:
        """Nothing runs yet."""
        self.calls = len(order)
        self._call, self._order, self._memory, self._synchronize = call, tuple(order), memory, synchronize
        self._last: list[tuple[int, object]] = []

    def run(self, plan: int) -> None:
        """Run the calls of `plan` in order."""
        chosen = _sets_of(plan, self._order)
        self._last = []
        call, last = self._call, self._last
        with self._memory.routed():
            for index in chosen:
                last.append((index, call(index)))
        self._synchronize()

    def outputs(self) -> list[tuple[int, object]]:
        """Outputs of the last run."""
        return self._last


class GraphReplay:
    """One CUDA graph per call, and two compositions of them: all calls, and the first half."""

    def __init__(self, call: Call, order: Sequence[int], memory: CudaMemory, stream: torch.cuda.Stream) -> None:
        """Capture.

        Raises:
            CandidateFailure: The module cannot be captured, or the output block is too small for even two calls.
        """
        self._stream = stream
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._outputs: list[tuple[int, object]] = []
        for index in order:
            if not self._capture(index, call, memory):
                break
        self.calls = len(self._outputs)
        if self.calls < min(2, len(order)):
            raise CandidateFailure(Failure.OUT_OF_MEMORY, "two calls do not fit the memory for outputs")
        sets = [index for index, _ in self._outputs]
        self._composed = {
            Plan.ALL: self._compose(sets),
            Plan.HALF: self._compose(sets[: max(1, len(sets) // 2)]),
        }
        for graph in self._graphs.values():
            graph.instantiate()
        torch.cuda.synchronize()

    def _capture(self, index: int, call: Call, memory: CudaMemory) -> bool:
        """Capture one call; false when the output block is full."""
        captured = self.once(index, call, memory)
        if captured is None:
            return False
        self._graphs[index], output = captured
        self._outputs.append((index, output))
        return True

    def once(self, index: int, call: Call, memory: CudaMemory) -> tuple[torch.cuda.CUDAGraph, object] | None:
        """Capture a call that belongs to no run, and what it returns; None when the output block is full."""
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        pool = memory.new_pool()
        try:
            with torch.cuda.stream(self._stream):
                graph.capture_begin(pool=pool.id)  # type: ignore[arg-type]
                try:
                    output = call(index)
                finally:
                    graph.capture_end()
        except torch.OutOfMemoryError:
            return None
        return graph, output

    def _compose(self, sets: Sequence[int]) -> object:
        """Executable graph that runs the calls one after the other."""
        from cuda.bindings import runtime  # only with a GPU

        def check(result: tuple[object, ...]) -> object:
            if int(result[0]) != 0:  # type: ignore[call-overload]
                raise RuntimeError(f"CUDA graph: {result[0]}")
            return result[1] if len(result) > 1 else None

        whole = check(runtime.cudaGraphCreate(0))
        before: list[object] = []
        for index in sets:
            child = runtime.cudaGraph_t(self._graphs[index].raw_cuda_graph())
            node = check(runtime.cudaGraphAddChildGraphNode(whole, before or None, len(before), child))
            before = [node]
        executable = check(runtime.cudaGraphInstantiate(whole, 0))
        check(runtime.cudaGraphUpload(executable, self._stream.cuda_stream))
        return executable

    def run(self, plan: int) -> None:
        """Launch the composition, or one graph, and wait for the whole device."""
        from cuda.bindings import runtime  # only with a GPU

        if plan in self._composed:
            (error,) = runtime.cudaGraphLaunch(self._composed[Plan(plan)], self._stream.cuda_stream)
            if int(error) != 0:
                raise RuntimeError(f"cudaGraphLaunch: error {int(error)}")
        elif plan >= Plan.SINGLE:
            with torch.cuda.stream(self._stream):
                self._graphs[plan - Plan.SINGLE].replay()
        torch.cuda.synchronize()

    def outputs(self) -> list[tuple[int, object]]:
        """Outputs of every call: graphs write to fixed memory."""
        return self._outputs


def _sets_of(plan: int, order: Sequence[int]) -> Sequence[int]:
    if plan == Plan.ALL:
        return order
    if plan == Plan.HALF:
        return order[: max(1, len(order) // 2)]
    if plan == Plan.NONE:
        return ()
    return (plan - Plan.SINGLE,)
