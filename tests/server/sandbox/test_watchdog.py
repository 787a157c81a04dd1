"""A candidate over a limit is ended, and the reason is known."""

from pathlib import Path
from typing import Any

from server.sandbox.limits import MIB, Limits
from tests.server.sandbox.candidates import wait_for


def killed_for(host: Any, source: str, limits: Limits) -> str | None:
    """Reason for which the warden ends a candidate that runs the source."""
    with host.slot() as slot, host.running(slot, source, limits):
        wait_for(lambda: host.warden.census([slot.index])[0].killed is not None)
        return str(host.warden.census([slot.index])[0].killed)


def test_memory_over_the_limit_is_noticed(host: Any) -> None:
    source = "import time\nheld = []\nwhile True:\n    held.append(b'x' * (8 << 20)); time.sleep(0.01)"
    assert killed_for(host, source, Limits(host_memory_bytes=300 * MIB)) == "memory"


def test_shared_mapping_counts_as_memory(host: Any) -> None:
    source = "import mmap, time\nm = mmap.mmap(-1, 200 << 20)\nm.write(b'x' * (200 << 20)); time.sleep(30)"
    assert killed_for(host, source, Limits(host_memory_bytes=150 * MIB)) == "memory"


def test_scratch_over_the_limit_is_noticed(host: Any) -> None:
    source = "import os, time\nos.makedirs('a/b')\nopen('a/b/f', 'wb').write(b'x' * (40 << 20)); time.sleep(30)"
    assert killed_for(host, source, Limits(scratch_bytes=32 * MIB)) == "scratch"


def test_deleted_file_that_is_still_open_counts(host: Any) -> None:
    source = """
import os, time
f = open("f", "wb", buffering=0)
os.unlink("f")
while True:
    f.write(b"x" * (4 << 20)); time.sleep(0.01)
"""
    assert killed_for(host, source, Limits(scratch_bytes=64 * MIB)) == "scratch"


def test_many_files_are_noticed(host: Any) -> None:
    source = "import time\nfor n in range(3000): open(str(n), 'w').close()\ntime.sleep(30)"
    assert killed_for(host, source, Limits(scratch_inodes=2000)) == "scratch"


def test_files_below_a_path_too_long_to_follow_are_noticed(host: Any) -> None:
    source = "import os, time\nfor _ in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\ntime.sleep(30)"
    assert killed_for(host, source, Limits()) == "scratch"


def test_tasks_over_the_limit_are_noticed(strong: Any) -> None:
    """Where the kernel's own limit did not hold: here nothing set it."""
    source = "import threading, time\nfor _ in range(60): threading.Thread(target=time.sleep, args=(30,)).start()"
    with strong.slot() as slot, strong.unconfined(slot, source, Limits(processes=20)):
        assert wait_for(lambda: strong.warden.census([slot.index])[0].killed is not None)
        assert strong.warden.census([slot.index])[0].killed == "processes"


def test_log_over_the_limit_is_noticed(host: Any) -> None:
    with host.slot() as slot, host.running(slot, "import time; time.sleep(30)", Limits(log_bytes=1000)):
        Path(slot.log).write_bytes(b"x" * 2000)
        assert wait_for(lambda: host.warden.census([slot.index])[0].killed == "log")


def test_release_says_why_a_candidate_was_ended(strong: Any) -> None:
    slot = strong.pool.acquire(5.0)
    with strong.running(slot, "import time; time.sleep(30)", Limits(log_bytes=1000)):
        Path(slot.log).write_bytes(b"x" * 2000)
        wait_for(lambda: strong.warden.census([slot.index])[0].killed is not None)
        assert strong.pool.release(slot) == "log"
