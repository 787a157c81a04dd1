"""Did anybody else use the GPU meanwhile? A resident kernel of ours that reads the clock all the time. Trusted.

A GPU runs one process at a time and switches between those that have work. So a kernel of ours that never ends sees a
jump in its own clock whenever another process had the device, and how long. That catches work no probe can find because
it is not there yet: a stream that waits in hardware for a word of our memory to change, and computes as soon as the
inputs are written, its process being stopped all the while. Work that gets no turn during a watch is no loss either: it
is not done before the clock.
"""

import torch
import triton
import triton.language as tl

GAP_NS = 20_000
"""Jumps below this are the loop's own: one turn takes 1 to 2 us. A switch to another process and back takes more."""

FIRST_LIMIT_S = 1.0
LONGEST_LIMIT_S = 60.0
"""A watch ends by itself then. torch may have to load a kernel while ours is resident, and that waits for it."""

STOP, STARTED, LAST, LOST, BEGAN, ENDED = range(6)
STATE_WORDS = 8


@triton.jit  # type: ignore[untyped-decorator]
def _now() -> tl.tensor:
    return tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)


@triton.jit  # type: ignore[untyped-decorator]
def _stand_watch(  # type: ignore[no-untyped-def]
    state,  # (STATE_WORDS,) int64
    gap_ns,
    limit_ns,
    STOP: tl.constexpr,
    STARTED: tl.constexpr,
    LAST: tl.constexpr,
    LOST: tl.constexpr,
):
    start = _now()
    tl.store(state + STARTED, start)
    last = start
    lost = start - start
    stop = tl.load(state + STOP, volatile=True)
    while stop == 0:
        now = _now()
        step = now - last
        lost += tl.where(step > gap_ns, step, 0)
        last = now
        stop = tl.load(state + STOP, volatile=True)
        stop = tl.where(now - start > limit_ns, 2, stop)
    tl.store(state + LAST, last)
    tl.store(state + LOST, lost)


@triton.jit  # type: ignore[untyped-decorator]
def _stamp(state, place, stop, STOP: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(state + place, _now())
    tl.store(state + STOP, stop)


class Watchman:
    """Stands watch on one GPU, once at a time."""

    def __init__(self, device: torch.device) -> None:
        """Compile and load the kernels: neither is possible while one of them is resident."""
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # does not wait for the default stream, nor it for this one
        self._limit_s = FIRST_LIMIT_S
        self.watch().end()

    def watch(self) -> "GpuWatch":
        """Begin."""
        return GpuWatch(self._device, self._stream, self._limit_s, self)

    def lasted(self, enough: bool) -> None:
        """Adapt the limit to windows that are longer than thought."""
        if not enough:
            self._limit_s = min(2 * self._limit_s, LONGEST_LIMIT_S)


class GpuWatch:
    """One watch. Nothing may synchronise with the whole device until its end; streams may."""

    def __init__(self, device: torch.device, stream: torch.cuda.Stream, limit_s: float, watchman: Watchman) -> None:
        self._stream, self._watchman = stream, watchman
        self._state = torch.zeros(STATE_WORDS, dtype=torch.int64, device=device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            _stand_watch[(1,)](
                self._state, GAP_NS, int(limit_s * 1e9), STOP=STOP, STARTED=STARTED, LAST=LAST, LOST=LOST, num_warps=1
            )
        _stamp[(1,)](self._state, BEGAN, 0, STOP=STOP, num_warps=1)

    def end(self) -> float:
        """Seconds somebody else had the device meanwhile; infinite where the watch did not last."""
        _stamp[(1,)](self._state, ENDED, 1, STOP=STOP, num_warps=1)
        self._stream.synchronize()
        state: list[int] = self._state.tolist()
        # Between two stamps of the other stream and the watch itself nobody looked.
        late_ns = state[STARTED] - state[BEGAN]
        early_ns = state[ENDED] - state[LAST]
        lasted = early_ns < GAP_NS or state[LOST] > 0
        self._watchman.lasted(lasted)
        if not lasted:
            return float("inf")
        return (state[LOST] + sum(ns for ns in (late_ns, early_ns) if ns > GAP_NS)) * 1e-9
