"""The judge's memory as a candidate maps it, and the allocator that puts outputs there."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from server.candidate import build
from server.candidate.build import BuildFailed, build_arena
from server.candidate.memory import CpuMemory
from server.judge.device import Arena, CpuDevice
from server.protocol import Region


@contextmanager
def mapped(memory: CpuMemory, size: int = 1 << 21) -> Iterator[tuple[Arena, Arena]]:
    """An input and an output block of a judge, mapped."""
    device = CpuDevice(1)
    inputs, outputs = device.allocate(size), device.allocate(size)
    memory.open(Region.INPUTS, "", inputs.fd, inputs.size)
    memory.open(Region.OUTPUTS, "", outputs.fd, outputs.size)
    yield inputs, outputs
    device.free(inputs)
    device.free(outputs)


def test_a_view_shows_what_the_judge_wrote(cpu_memory: CpuMemory) -> None:
    with mapped(cpu_memory) as (inputs, _):
        inputs.data[512 : 512 + 24].view(torch.float32).copy_(torch.arange(6.0))
        view = cpu_memory.view(Region.INPUTS, 512, (2, 3), torch.float32)
        assert view.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        assert view.is_contiguous()
        assert cpu_memory.view(Region.INPUTS, 512, (), torch.float32).item() == 0.0
        assert cpu_memory.view(Region.INPUTS, 512, (0, 3), torch.float32).numel() == 0


def test_routed_allocations_land_in_the_judges_block(cpu_memory: CpuMemory) -> None:
    with mapped(cpu_memory) as (_, outputs):
        with cpu_memory.routed():
            first = torch.full((100,), 3.0)
            second = torch.full((7,), 4.0)
        region, offset = cpu_memory.locate(first.data_ptr())
        assert (region, offset) == (Region.OUTPUTS, 0)
        region, offset = cpu_memory.locate(second.data_ptr())
        assert region is Region.OUTPUTS
        assert offset >= 400
        assert offset % 64 == 0
        assert outputs.data[:400].view(torch.float32).tolist() == [3.0] * 100
        assert outputs.data[offset : offset + 28].view(torch.float32).tolist() == [4.0] * 7


def test_a_piece_given_back_is_not_used_again_in_the_same_run(cpu_memory: CpuMemory) -> None:
    with mapped(cpu_memory), cpu_memory.routed():
        gone = torch.empty(64)
        address = gone.data_ptr()
        del gone
        assert torch.empty(64).data_ptr() > address


def test_every_run_begins_at_the_start_of_the_block(cpu_memory: CpuMemory) -> None:
    with mapped(cpu_memory):
        offsets = []
        for _ in range(2):
            with cpu_memory.routed():
                offsets.append(cpu_memory.locate(torch.empty(9).data_ptr()))
        assert offsets == [(Region.OUTPUTS, 0)] * 2


def test_a_piece_that_is_kept_is_not_handed_out_again(cpu_memory: CpuMemory) -> None:
    """A workspace made in a later call than the first."""
    with mapped(cpu_memory):
        with cpu_memory.routed():
            torch.empty(64)
            kept = torch.full((64,), 3.0)
        with cpu_memory.routed():
            made = [torch.zeros(40), torch.zeros(40), torch.zeros(64), torch.zeros(64)]
        spans = sorted((t.data_ptr(), t.data_ptr() + t.numel() * 4) for t in [kept, *made])
        assert all(left[1] <= right[0] for left, right in pairwise(spans))
        assert {cpu_memory.locate(t.data_ptr())[0] for t in made} == {Region.OUTPUTS}
        assert kept.tolist() == [3.0] * 64
        del kept, made
        with cpu_memory.routed():
            assert cpu_memory.locate(torch.empty(512).data_ptr()) == (Region.OUTPUTS, 0)


def test_a_piece_of_an_earlier_block_stays_mapped(cpu_memory: CpuMemory) -> None:
    with mapped(cpu_memory):
        with cpu_memory.routed():
            kept = torch.full((64,), 3.0)
        with mapped(cpu_memory):
            with cpu_memory.routed():
                assert cpu_memory.locate(torch.zeros(64).data_ptr())[0] is Region.OUTPUTS
            cpu_memory.reset()
            assert cpu_memory.locate(kept.data_ptr()) == (Region.FOREIGN, 0)
            assert kept.tolist() == [3.0] * 64
            del kept
            cpu_memory.reset()
            assert cpu_memory._replaced == []


def test_allocations_outside_of_a_run_are_ordinary(cpu_memory: CpuMemory) -> None:
    with mapped(cpu_memory):
        with cpu_memory.routed():
            pass
        assert cpu_memory.locate(torch.empty(9).data_ptr()) == (Region.FOREIGN, 0)


def test_a_full_block_falls_back_to_ordinary_memory(cpu_memory: CpuMemory) -> None:
    with mapped(cpu_memory), cpu_memory.routed():
        large = torch.ones(1 << 20)
        assert cpu_memory.locate(large.data_ptr()) == (Region.FOREIGN, 0)
        assert cpu_memory.locate(torch.empty(4).data_ptr())[0] is Region.OUTPUTS
        assert float(large.sum()) == 1 << 20


def test_addresses_are_located_by_region(cpu_memory: CpuMemory) -> None:
    with mapped(cpu_memory) as (inputs, _):
        view = cpu_memory.view(Region.INPUTS, 1024, (3,), torch.float32)
        assert cpu_memory.locate(view.data_ptr()) == (Region.INPUTS, 1024)
        assert cpu_memory.locate(view.data_ptr() - 1024 + inputs.size) != (Region.INPUTS, inputs.size)
        assert cpu_memory.locate(0) == (Region.FOREIGN, 0)


def test_mapping_a_region_again_replaces_it(cpu_memory: CpuMemory) -> None:
    with mapped(cpu_memory):
        old = cpu_memory.view(Region.INPUTS, 0, (1,), torch.float32)
        with mapped(cpu_memory) as (inputs, _):
            inputs.data[:4].view(torch.float32)[0] = 5.0
            assert cpu_memory.view(Region.INPUTS, 0, (1,), torch.float32).item() == 5.0
            assert cpu_memory.locate(old.data_ptr()) == (Region.FOREIGN, 0)


def test_allocated_bytes_are_counted(cpu_memory: CpuMemory) -> None:
    before = cpu_memory.allocated_bytes()
    kept = torch.empty(1000)
    assert cpu_memory.allocated_bytes() - before >= kept.numel() * 4


def test_the_library_is_built_once_and_readable_by_other_users(cpu_memory: CpuMemory, tmp_path: Path) -> None:
    assert cpu_memory is not None  # so that there is a compiler
    (tmp_path / "kept").mkdir()
    built = Path(cpu_memory._library._name)
    assert built.stat().st_mode & 0o777 == 0o755
    stamp = built.stat().st_mtime_ns
    assert build_arena("cpu", built.parent) == built
    assert built.stat().st_mtime_ns == stamp
    assert [p.suffix for p in built.parent.iterdir()] == [".so"]


def test_the_gpus_allocator_builds_without_a_gpu(tmp_path: Path) -> None:
    assert build_arena("cuda", tmp_path).is_file()


def test_a_host_without_a_compiler_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(BuildFailed, match="gcc"):
        build_arena("cuda", tmp_path)


def test_a_compiler_that_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\necho 'no such option' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(BuildFailed, match="no such option"):
        build.build_arena("cuda", tmp_path / "cache")
