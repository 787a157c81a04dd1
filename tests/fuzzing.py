"""Random input for whatever reads what strangers send: packets of candidates, agents' texts, frames of clients.

Each generator takes a `random.Random`, so that a seed gives the same inputs again. Each `try_...` raises `Fault`, which
shows the input, if anything comes out but what is promised.
"""

import asyncio
import json
import random
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import torch
from websockets.asyncio.client import connect as ws_connect
from websockets.exceptions import ConnectionClosed

from kernel_env.terms import Language
from server.evaluator.static_stage.rules import Unparsable, first_violation
from server.evaluator.submission_text import detect_language, extract
from server.judge.device import CpuDevice
from server.judge.layouts import OutputSpec, byte_span, calls_share_memory, check_called, view_output
from server.protocol import (
    MAX_DIMS,
    MAX_OUTPUTS,
    MAX_PACKET_BYTES,
    MAX_PARAMETERS,
    MAX_STRUCTURE_BYTES,
    MAX_TEXT_BYTES,
    Called,
    Failure,
    MalformedReply,
    Packet,
    Region,
    Reply,
    TensorLayout,
    decode,
    encode_bound,
    encode_called,
    encode_done,
    encode_failed,
    encode_loaded,
    encode_operators,
    encode_prepared,
    encode_ready,
    encode_share,
)
from tests.cases import corpus

SLOW_S = 0.5
"""No single input may keep a reader busy for longer."""

ANSWER_S = 20.0
BLOCK_BYTES = 4 << 20
SHOWN_CHARS = 500

EDGES = (0, 1, 2, 7, 8, 63, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1)
SPEC = OutputSpec("T", ((4, 3),), (torch.float32,), aliases_input=False)


class Fault(Exception):
    """What was promised did not hold for an input."""

    def __init__(self, what: str, given: object) -> None:
        super().__init__(f"{what}: {given!r:.{SHOWN_CHARS}}")


def _number(source: random.Random) -> int:
    return source.choice(EDGES) if source.random() < 0.5 else source.getrandbits(source.randrange(1, 64))


def _layout(source: random.Random) -> TensorLayout:
    likely = source.random() < 0.5
    dims = 2 if likely else source.randrange(MAX_DIMS + 1)
    shape = (4, 3) if likely else tuple(_number(source) % 2**63 for _ in range(dims))
    strides = (3, 1) if source.random() < 0.3 and dims == 2 else tuple(_number(source) % 2**63 for _ in range(dims))
    dtype = 0 if likely else source.randrange(14)
    offset = source.choice((0, 64, BLOCK_BYTES - 48, BLOCK_BYTES, 2**64 - 1, _number(source)))
    return TensorLayout(dtype, source.choice(list(Region)), offset, shape, strides)


def _called(source: random.Random) -> Called:
    structure = source.choice(("T", "(T,T)", "N", "S", "[" * 900, "{'a':T}"))
    tensors = tuple(_layout(source) for _ in range(source.choice((0, 1, 1, 1, 2, MAX_OUTPUTS))))
    return Called(source.getrandbits(16), _number(source) % 2**63, structure, tensors)


def _valid_packet(source: random.Random) -> bytes:
    makers: tuple[Callable[[], bytes], ...] = (
        encode_ready,
        encode_loaded,
        lambda: encode_bound([source.getrandbits(32) for _ in range(source.randrange(50))]),
        lambda: encode_called(_called(source)),
        lambda: encode_prepared(source.getrandbits(32)),
        lambda: encode_done(source.getrandbits(64)),
        lambda: encode_failed(source.choice(list(Failure)), "text " * source.randrange(4000)),
        lambda: encode_operators(f"aten.op{n}" for n in range(source.randrange(2000))),
        lambda: encode_share(source.choice((None, 0.0, 0.5, 1.0))),
    )
    return source.choice(makers)()


def packet(source: random.Random) -> bytes:
    """A packet as a candidate could send it: valid, damaged, or noise."""
    kind = source.random()
    if kind < 0.15:
        return source.randbytes(source.choice((0, 1, 2, 3, 10, 200, 5000, MAX_PACKET_BYTES)))
    if kind < 0.3:
        return bytes([source.randrange(12), source.randrange(3)]) + source.randbytes(source.randrange(400))
    made = bytearray(_valid_packet(source))
    if kind < 0.6:
        return bytes(made)
    for _ in range(source.randrange(1, 6)):
        place = source.randrange(len(made) + 1)
        change = source.randrange(5)
        if change == 0 and place < len(made):
            made[place] ^= 1 << source.randrange(8)
        elif change == 1:
            del made[place:]
        elif change == 2:
            made[place:place] = source.randbytes(source.randrange(1, 20))
        elif change == 3:
            made[place : place + 8] = struct.pack("<Q", _number(source))
        else:
            made += made[: source.randrange(64)]
        if not made:
            break
    return bytes(made[:MAX_PACKET_BYTES])


def try_packet(given: bytes) -> str:
    """Decode it and use what it describes as the judge does; says what it was, `malformed` or a kind of reply."""
    start = time.monotonic()
    try:
        found = decode(given)
    except MalformedReply:
        return "malformed"
    except Exception as error:
        raise Fault(f"decode raised {type(error).__name__}: {error}", given) from error
    _require_limits(found, given)
    if found.called is not None:
        try:
            _use(found.called)
        except Exception as error:
            raise Fault(f"a described output raised {type(error).__name__}: {error}", given) from error
    if time.monotonic() - start > SLOW_S:
        raise Fault("reading took long", given)
    return found.kind.name.lower()


def _require_limits(found: Packet, given: bytes) -> None:
    called = found.called
    kept = (
        len(found.text.encode("utf-8", "surrogatepass")) <= 3 * MAX_TEXT_BYTES  # each bad byte becomes three
        and len(found.missing) <= MAX_PARAMETERS
        and sum(len(name) for name in found.operators) <= MAX_TEXT_BYTES
        and (found.share is None or 0.0 <= found.share <= 1.0)
        and (called is None or len(called.structure) <= MAX_STRUCTURE_BYTES)
        and (called is None or len(called.tensors) <= MAX_OUTPUTS)
    )
    if not kept:
        raise Fault("decoded beyond a limit", given)


@cache
def _block() -> Any:
    return CpuDevice(threads=1).allocate(BLOCK_BYTES)


def _use(called: Called) -> None:
    """What the judge does with a description."""
    for must_be_routed in (False, True):
        refused = check_called(called, SPEC, must_be_routed)
    calls_share_memory([called, called])
    for tensor in called.tensors:
        if tensor.dtype >= 14:
            continue
        byte_span(tensor)
        view = view_output(_block(), tensor) if refused is None else None
        if view is not None:
            first = view.data_ptr() - _block().data.data_ptr()
            if not 0 <= first <= BLOCK_BYTES - view.numel() * view.element_size():
                raise ValueError("a view outside of the block")
            view.float().sum()  # reads every element


@cache
def _sources() -> tuple[str, ...]:
    return tuple(case.reply for case in corpus("cpu"))


PIECES = (
    *("```python\n", "```", "~~~", "\ufeff", "\r", "\x00", "\ud800", "\U0001f600", "class ModelNew:", "'''", '"' * 3),
    *("\\\n", "(" * 500, "lambda: " * 200, "-" * 5000 + "1", "f'{f\"{1}\"}'", "match x:\n case _: ...", "async "),
    *(
        "\t \t",
        "9" * 5000,
        "x=" * 3000 + "1",
        "@triton.jit\n",
        "import torch as trit\xf6n\n",
        "#" * 200,
        "nonlocal x\n",
    ),
    *("[" * 300 + "]" * 300, "0x" + "f" * 4000, "type X = int\n"),
)


def text(source: random.Random) -> str:
    """What an agent could send as code: a submission of the corpus, damaged."""
    made = source.choice(_sources())
    for _ in range(source.randrange(1, 8)):
        place, length = source.randrange(len(made) + 1), source.randrange(200)
        change = source.randrange(4)
        if change == 0:
            made = made[:place] + made[place + length :]
        elif change == 1:
            made = made[:place] + source.choice(PIECES) + made[place:]
        elif change == 2:
            other = source.choice(_sources())
            made = made[:place] + other[: source.randrange(len(other) + 1)] + made[place:]
        else:
            made = made[:place] + made[place : place + length][::-1] + made[place + length :]
    return made


def try_text(given: str) -> str:
    """Take the code out, tell its language, and apply the static rules, as in their child; says what came of it."""
    start = time.monotonic()
    offered = (Language.CPP, Language.TRITON)
    try:
        code = extract(given)
        language = detect_language(code, offered, Language.CPP)
        violation = first_violation(code, language.value)
        outcome = "accepted" if violation is None else violation.rule
    except Unparsable:
        outcome = "unparsable"
    except (RecursionError, MemoryError):
        outcome = "too deep"  # ends the child, which is a verdict
    except Exception as error:
        raise Fault(f"the static stage raised {type(error).__name__}: {error}", given) from error
    if time.monotonic() - start > SLOW_S + len(given) / 1e5:
        raise Fault("the static stage took long", given)
    return outcome


VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 7, 2**63, 1e308, "", "x", "relu", "level1/../../x", "\x00", "\U0001f600", "\xe9" * 300),
    *([], [[]], {}, {"a": {}}, ["x"] * 50),
)
KEYS = (
    *("type", "data", "code", "message", "seed", "task_id", "split", "level", "language", "episode_id", "row_index"),
    *("max_turns", "evaluation", "timeout_s", "metadata", "__class__", "_connection", ""),
)


def _json(source: random.Random, depth: int = 0) -> Any:
    if depth < 3 and source.random() < 0.4:
        return {source.choice(KEYS): _json(source, depth + 1) for _ in range(source.randrange(5))}
    if depth < 3 and source.random() < 0.2:
        return [_json(source, depth + 1) for _ in range(source.randrange(4))]
    return source.choice(VALUES)


def frame(source: random.Random) -> str | bytes:
    """What a client could send over the WebSocket."""
    kind = source.random()
    if kind < 0.1:
        return source.randbytes(source.randrange(300))
    if kind < 0.2:
        highest = source.choice((127, 0xD7FF))
        return "".join(chr(source.randrange(32, highest)) for _ in range(source.randrange(200)))
    if kind < 0.3:
        return source.choice(("{", "[", '"', '{"type":')) * source.choice((1, 50, 30_000))
    data = {source.choice(KEYS): _json(source) for _ in range(source.randrange(5))}
    message: dict[str, Any] = {
        "type": source.choice(("reset", "step", "state", "close_", "ping", source.choice(VALUES)))
    }
    message["data"] = source.choice((data, data, _json(source), {"code": text(source)}))
    made = json.dumps(message)
    if source.random() < 0.2:
        place = source.randrange(len(made))
        made = made[:place] + source.choice(("NaN", "Infinity", "1e999", "\\ud800", ",", "}", '"')) + made[place:]
    return made


def fragments(source: random.Random, given: str | bytes) -> Iterator[str | bytes]:
    """The same message in pieces."""
    at = 0
    while at < len(given):
        step = source.randrange(1, max(2, len(given)))
        yield given[at : at + step]
        at += step


async def converse(url: str, source: random.Random, frames: int) -> int:
    """One session: frames whole and in pieces, each answered, then an orderly end or none; returns the answers.

    Raises:
        Fault: An answer that is none.
    """
    answered = 0
    async with ws_connect(f"{url.replace('http', 'ws')}/ws", proxy=None, max_size=None) as socket:
        for _ in range(frames):
            given = frame(source)
            try:
                await socket.send(list(fragments(source, given)) if given and source.random() < 0.2 else given)
                async with asyncio.timeout(ANSWER_S):
                    reply = json.loads(await socket.recv())
            except ConnectionClosed:
                break
            except TimeoutError as error:
                raise Fault("no answer", given) from error
            if reply["type"] not in {"observation", "state", "error"}:
                raise Fault(f"an answer of type {reply['type']}", given)
            answered += 1
        if source.random() < 0.5:
            socket.transport.abort()
    return answered


def seeds(seed: int, count: int) -> Sequence[random.Random]:
    """So many independent sources."""
    return [random.Random(f"{seed}/{number}") for number in range(count)]


REPLIES = frozenset(kind.name.lower() for kind in Reply) | {"malformed"}
