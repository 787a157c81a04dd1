"""A path in a closed home becomes readable for candidates, and the rest of that home does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.sandbox import program, roots

LOOK = """
import os, sys
from server.sandbox import program, reach, roots
wanted = sys.argv[1]
left = reach.make_reachable([*roots.default_readable(), wanted])
program.become(62700, 62700)
print(left, os.listdir(wanted), os.listdir(os.path.dirname(wanted)))
"""


def test_only_the_wanted_path_of_a_closed_directory_can_be_read(tmp_path: Path, found_mounts: bool) -> None:
    if not found_mounts:
        pytest.skip("no privilege to mount")
    closed = tmp_path / "home"
    (closed / "python" / "lib").mkdir(parents=True)
    (closed / "private").mkdir()
    closed.chmod(0o700)
    for part in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        part.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOOK, str(closed / "python")],
        env=program.environment(),
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.decode() == "() ['lib'] ['python']\n"
    assert roots.blocking_directory(str(closed / "python")) == str(closed)


@pytest.fixture
def found_mounts() -> bool:
    """Whether this process may mount: a privilege that containers withhold from root."""
    if os.getuid() != 0:
        return False
    return subprocess.run(["unshare", "--mount", "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def test_open_path_is_not_blocked() -> None:
    assert roots.blocking_directory("/usr/lib") is None


def test_path_that_is_absent_is_not_blocked(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for part in tmp_path.parents:
        if part.stat().st_uid == os.getuid() and part != part.parent and not part.stat().st_mode & 1:
            part.chmod(0o755)
    assert roots.blocking_directory(str(tmp_path / "none" / "below")) is None
