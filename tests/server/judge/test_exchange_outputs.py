"""Output memory on the CPU device: what poison changes, what is read back, and what a fingerprint sees."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from kernel_env.terms import Precision
from server.judge import fused
from server.judge.device import CpuDevice
from server.judge.distributions import Distribution, Draw
from server.judge.exchange import Exchange
from server.judge.reference import Reference
from server.protocol import DTYPES, Called, Region, TensorLayout

SOURCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.rand(6, 5)]

def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference("increment", SOURCE, Precision.IEEE, has_free_inputs=True, device=CpuDevice(1))


@pytest.fixture
def shared(reference: Reference) -> Iterator[Exchange]:
    exchange = Exchange(CpuDevice(1), reference)
    yield exchange
    exchange.close()


def memory_of_outputs(shared: Exchange) -> Tensor:
    assert shared.outputs is not None
    return shared.outputs.data


def memory_of_inputs(shared: Exchange) -> Tensor:
    assert shared.inputs is not None
    return shared.inputs.data


def output(call: int, offset: int, shape: tuple[int, ...] = (6, 3), dtype: str = "float32") -> Called:
    strides = tuple(torch.empty(shape, device="meta").stride())
    return Called(call, 0, "T", (TensorLayout(DTYPES.index(dtype), Region.OUTPUTS, offset, shape, strides),))


def draws(count: int) -> dict[int, Draw]:
    return {i: Draw(1000 + i, Distribution.NORMAL) for i in range(count)}


def opened(shared: Exchange) -> Tensor:
    """Output memory of small size, filled with a pattern."""
    shared.open_outputs(1)
    block = memory_of_outputs(shared)
    block.copy_(torch.arange(block.numel()).to(torch.uint8))
    return block


def test_poison_changes_every_word_of_known_outputs_and_nothing_else(shared: Exchange) -> None:
    block = opened(shared)
    before = block.clone()
    shared.poison([output(0, 64), output(1, 4096, (3,), "float16"), output(2, 8192, ())])
    changed = (block != before).nonzero().view(-1).tolist()
    spans = [(64, 136), (4096, 4104), (8192, 8200)]
    inside = [b for b in changed if any(start <= b < end for start, end in spans)]
    assert changed == inside
    for start, end in spans:
        words = slice(start, end)
        assert bool((block[words].view(torch.int64) != before[words].view(torch.int64)).all())


def test_poison_is_random_in_every_bit(shared: Exchange) -> None:
    opened(shared)
    ones = torch.zeros(64, dtype=torch.int64)
    for _ in range(4):
        shared.poison([output(0, 0, (16, 16))])
        words = memory_of_outputs(shared)[:1024].view(torch.int64)
        ones += torch.stack([(words >> bit) & 1 for bit in range(64)]).sum(dim=1)
    assert int(ones.min()) > 512 * 0.3
    assert int(ones.max()) < 512 * 0.7


def test_poison_differs_every_time(shared: Exchange) -> None:
    opened(shared)
    seen = set()
    for _ in range(4):
        shared.poison([output(0, 0)])
        seen.add(bytes(memory_of_outputs(shared)[:72].tolist()))
    assert len(seen) == 4


def test_poison_leaves_outputs_that_lie_in_inputs_and_empty_ones_alone(shared: Exchange) -> None:
    block = opened(shared)
    shared.open_inputs(1, with_state=False)
    shared.fill(draws(1))
    before = block.clone(), memory_of_inputs(shared).clone()
    alias = TensorLayout(0, Region.INPUTS, 0, (4,), (1,))
    shared.poison([Called(0, 0, "T", (alias,)), output(1, 0, (0, 3))])
    assert torch.equal(block, before[0])
    assert torch.equal(memory_of_inputs(shared), before[1])


@pytest.mark.parametrize("offset", [2**21 - 4, 2**21, 2**40, 2**63, 2**64 - 4, 3])
def test_a_hostile_offset_hurts_nobody(shared: Exchange, offset: int) -> None:
    """Layouts are poisoned and weighed before it is found that they leave the block."""
    opened(shared)
    hostile = output(0, offset)
    shared.poison([hostile])
    assert shared.fingerprint([hostile]) == shared.fingerprint([hostile])
    assert shared.outputs_of(hostile) is None


def test_outputs_are_read_from_the_judges_memory(shared: Exchange) -> None:
    block = opened(shared)
    values = torch.arange(18.0).view(6, 3)
    block[256 : 256 + 72].view(torch.float32).copy_(values.view(-1))
    tensors = shared.outputs_of(output(0, 256))
    assert tensors is not None
    assert torch.equal(tensors[0], values)
    assert tensors[0].data_ptr() == block.data_ptr() + 256


def test_an_output_in_an_input_is_read_from_the_inputs(shared: Exchange, reference: Reference) -> None:
    opened(shared)
    fields = shared.open_inputs(1, with_state=False)
    shared.fill(draws(1))
    alias = TensorLayout(0, Region.INPUTS, fields["arguments"][0]["offset"], (6, 5), (5, 1))
    tensors = shared.outputs_of(Called(0, 0, "T", (alias,)))
    expected = reference.make_inputs(draws(1)[0])[0]
    assert tensors is not None
    assert isinstance(expected, Tensor)
    assert torch.equal(tensors[0], expected)


def test_a_fingerprint_repeats_itself_and_is_keyed(shared: Exchange, reference: Reference) -> None:
    opened(shared)
    calls = [output(0, 0), output(1, 1024)]
    assert shared.fingerprint(calls) == shared.fingerprint(calls)
    assert len(shared.fingerprint(calls)) == 2
    other = Exchange(CpuDevice(1), reference)
    opened(other)
    assert other.fingerprint(calls) != shared.fingerprint(calls)
    other.close()
    assert shared.fingerprint([]) == []


def test_one_changed_bit_anywhere_in_an_output_is_seen(shared: Exchange) -> None:
    """The top bit of a word among them: times an even weight it would vanish."""
    block = opened(shared)
    calls = [output(0, 64), output(1, 1024)]
    first, second = shared.fingerprint(calls)
    for byte in range(64, 64 + 72):
        for bit in range(8):
            block[byte] ^= 1 << bit
            changed = shared.fingerprint(calls)
            block[byte] ^= 1 << bit
            assert changed[0] != first
            assert changed[1] == second


def test_one_changed_bit_anywhere_in_the_whole_block_is_seen(shared: Exchange) -> None:
    block = opened(shared)
    before = shared.fingerprint(None)
    for byte in (0, 7, 12_345, block.numel() // 2 + 3, block.numel() - 1):
        block[byte] ^= 128
        assert shared.fingerprint(None) != before
        block[byte] ^= 128
    assert shared.fingerprint(None) == before


def swap(block: Tensor, left: int, right: int, width: int) -> None:
    held = block[left : left + width].clone()
    block[left : left + width] = block[right : right + width]
    block[right : right + width] = held


def flip_top_bits(block: Tensor, left: int, right: int, width: int) -> None:
    for start in (left, right):
        block[start + width - 1] ^= 128


def shift_value(block: Tensor, left: int, right: int, width: int) -> None:
    """Adds to one word what it takes from another."""
    words = block.view({4: torch.int32, 8: torch.int64}[width])
    words[left // width] += 1
    words[right // width] -= 1


@pytest.mark.parametrize("change", [swap, flip_top_bits, shift_value])
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("weights", [fused.WEIGHTS, 1024])
def test_changes_that_cancel_in_a_plain_sum_are_seen(
    shared: Exchange,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Tensor, int, int, int], None],
    width: int,
    weights: int,
) -> None:
    """With few weights the two words lie at the same place of different chunks in one of the cases."""
    monkeypatch.setattr(fused, "WEIGHTS", weights)
    block = opened(shared)
    for right in (8, 4096, 1 << 20):
        block[:16].random_()
        block[right : right + 8].random_()
        before = shared.fingerprint(None)
        change(block, 0, right, width)
        assert shared.fingerprint(None) != before


def test_spots_lie_all_over_the_block_and_are_other_ones_every_time(shared: Exchange) -> None:
    block = opened(shared)
    first, second = shared.choose_spots(), shared.choose_spots()
    assert not torch.equal(first, second)
    for spots in (first, second):
        assert 0 <= int(spots.min()) < 1000
        assert block.numel() // 4 - 1000 < int(spots.max()) < block.numel() // 4


def test_a_change_at_a_spot_is_seen(shared: Exchange) -> None:
    block = opened(shared)
    spots = shared.choose_spots()
    held = shared.read(spots)
    assert shared.still_holds(spots, held)
    block[int(spots[5]) * 4 + 3] ^= 128
    assert not shared.still_holds(spots, held)
