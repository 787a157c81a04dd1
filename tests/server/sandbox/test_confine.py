"""A confined process really is refused what it must not have, and keeps what compilers and torch need."""

import errno
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from server.errors import EvaluatorError
from server.sandbox import program
from server.sandbox.confine import Confinement, confine
from server.sandbox.isolation import Isolation
from server.sandbox.limits import Limits

NOTHING = Isolation(uid=False, landlock_abi=0, seccomp=False, no_new_privs=False, missing=())
ATTEMPTS = """
import ctypes, json, os, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
outcomes = {}
for action in ACTIONS:
    try:
        exec(action)
    except PermissionError:
        outcomes[action] = "refused"
    except OSError as error:
        outcomes[action] = error.strerror
    else:
        outcomes[action] = "allowed"
print(json.dumps(outcomes))
"""
REFUSED = [
    "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
    "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "socket.socket(40, socket.SOCK_STREAM)",
    "call('syscall', 41, ctypes.c_ulong((1 << 32) | 2), 1, 0)",
    "call('ptrace', 16, os.getppid(), 0, 0)",
    "call('process_vm_readv', os.getppid(), 0, 0, 0, 0, 0)",
    "call('unshare', 0x10000000)",
    "call('syscall', 56, ctypes.c_ulong(0x10000000 | 17), 0, 0, 0, 0)",
    "call('syscall', 56, ctypes.c_ulong(0x8000 | 17), 0, 0, 0, 0)",
    "call('mount', b'none', b'/proc', b'tmpfs', 0, None)",
    "call('chroot', b'.')",
    "call('prctl', 1, 0, 0, 0, 0)",
    "call('prctl', 4, 0, 0, 0, 0)",
    "call('syscall', 157, ctypes.c_ulong((1 << 32) | 4), 0, 0, 0, 0)",
    "call('shmget', 0, 4096, 0o1600)",
    "os.memfd_create('x')",
    "os.setsid()",
    "os.sched_setaffinity(0, {0})",
    "os.setpriority(os.PRIO_PROCESS, 0, 5)",
    "__import__('resource').prlimit(os.getppid(), 7)",
    "os.kill(os.getppid(), 0)",
    "os.open(f'/proc/{os.getppid()}/environ', os.O_RDONLY)",
    "os.open(f'/proc/{os.getppid()}/mem', os.O_RDONLY)",
    "os.open('/proc/self/oom_score_adj', os.O_WRONLY)",
    "os.open('/dev/shm/x', os.O_WRONLY | os.O_CREAT)",
    "os.open('/tmp/x', os.O_WRONLY | os.O_CREAT)",
    "os.open('/etc/shadow', os.O_RDONLY)",
    "os.listdir('/dev')",
    "os.listdir('..')",
    "os.mknod('fifo', 0o20600, os.makedev(1, 3))",
    "os.setresuid(0, 0, 0)",
]
ALLOWED = [
    "a, b = socket.socketpair(); a.send(b'x'); b.recv(1)",
    "open(f'/proc/self/task/{os.getpid()}/comm', 'w').write('name')",
    "os.mkdir('a'); os.mkdir('b'); open('a/f', 'w').close(); os.rename('a/f', 'b/f')",
    "open('/dev/null', 'w').write('x')",
    "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}, setpgroup=0), 0)",
    "os.truncate(os.open('c', os.O_RDWR | os.O_CREAT), 10)",
    "os.open('/proc/cpuinfo', os.O_RDONLY)",
]
CLONE3 = "call('syscall', 435, 0, 0)"


@pytest.fixture(scope="module")
def outcomes(host: Any) -> dict[str, str]:
    """What came of every attempt, made one after the other by one candidate."""
    source = ATTEMPTS.replace("ACTIONS", repr([*REFUSED, *ALLOWED, CLONE3]))
    return dict(json.loads(host.run(source)))


@pytest.mark.parametrize("action", REFUSED)
def test_attempt_is_refused(outcomes: dict[str, str], action: str) -> None:
    if os.uname().machine != "x86_64" and "syscall" in action:
        pytest.skip("the numbers are those of x86_64")
    assert outcomes[action] == "refused"


@pytest.mark.parametrize("action", ALLOWED)
def test_ordinary_action_works(outcomes: dict[str, str], action: str) -> None:
    assert outcomes[action] == "allowed"


def test_clone3_is_unknown_so_that_glibc_falls_back_to_clone(outcomes: dict[str, str]) -> None:
    assert outcomes[CLONE3] == os.strerror(errno.ENOSYS)


def test_world_writable_file_outside_is_neither_written_nor_truncated(host: Any, place: Any) -> None:
    path = place("outside") / "file"
    path.write_text("kept")
    path.chmod(0o666)
    actions = [f"os.open({str(path)!r}, os.O_WRONLY)", f"os.truncate({str(path)!r}, 0)"]
    found = json.loads(host.run(ATTEMPTS.replace("ACTIONS", repr(actions))))
    assert set(found.values()) == {"refused"}
    assert path.read_text() == "kept"


def test_no_foreign_descriptor_is_open(host: Any) -> None:
    source = """
import os
links = []
for name in set(os.listdir("/proc/self/fd")) - {"0", "1", "2"}:
    try:
        links.append(os.readlink("/proc/self/fd/" + name))
    except FileNotFoundError:
        pass  # the descriptor of the listing itself
print(all(link.startswith("/proc/") for link in links), os.readlink("/proc/self/fd/0"))
"""
    assert host.run(source) == "True /dev/null"


def test_environment_holds_only_what_is_named(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    seen = host.run("import os; print(*os.environ)").split()
    assert "HF_TOKEN" not in seen
    assert {"PYTHONPATH", "LD_PRELOAD"}.isdisjoint(seen)


def test_ids_and_groups_are_the_slots(strong: Any) -> None:
    with (
        strong.slot() as slot,
        strong.running(slot, "print(os.getresuid(), os.getresgid(), os.getgroups())") as process,
    ):
        output = process.communicate(timeout=30)[0].decode()
    assert output == f"{(slot.uid,) * 3} {(slot.gid,) * 3} []\n"


def test_no_core_is_written_and_files_are_bounded(host: Any) -> None:
    source = "import resource as r; print(r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_FSIZE))"
    assert host.run(source, Limits(file_bytes=12345)) == "(1, 1) (12345, 12345)"


def test_fork_fails_at_the_limit(strong: Any) -> None:
    source = """
import os, signal, time
pids = []
try:
    while len(pids) < 100:
        pids.append(os.fork())
        if pids[-1] == 0:
            time.sleep(20)
            os._exit(0)
except BlockingIOError:
    print(len(pids) < 20)
for pid in pids:
    os.kill(pid, signal.SIGKILL)
"""
    assert strong.run(source, Limits(processes=20)) == "True"


def test_child_dies_with_its_parent(host: Any) -> None:
    parent = f"""
import os, sys, time
scratch, stop_at = sys.argv.pop(), time.monotonic() + 20
pid = os.fork()
if pid == 0:
    exec({host.boot()!r})
while not os.path.exists(scratch + "/up") and time.monotonic() < stop_at:
    time.sleep(0.01)
print(pid, flush=True)
"""
    with host.slot() as slot:
        arguments = [
            host.confinement(slot, Limits()),
            "import time; open('up', 'w').close(); time.sleep(30)",
            slot.scratch,
        ]
        done = subprocess.run(
            [sys.executable, "-P", "-c", parent, *arguments],
            env=program.environment(),
            stdout=subprocess.PIPE,
            timeout=25,
            check=True,
        )
        stat = Path(f"/proc/{int(done.stdout)}/stat")
        stop_at = time.monotonic() + 5
        while stat.exists() and b") Z" not in stat.read_bytes() and time.monotonic() < stop_at:
            time.sleep(0.01)
        assert not stat.exists() or b") Z" in stat.read_bytes()


def test_child_of_another_parent_than_expected_is_not_confined(strong: Any) -> None:
    with strong.slot() as slot:
        told = strong.confinement(slot, Limits()).replace('"parent_pid":null', '"parent_pid":2')
        done = subprocess.run(
            [sys.executable, "-P", "-c", strong.boot(), told, "print('went on')"],
            env=program.environment(),
            capture_output=True,
            timeout=30,
            check=False,
        )
    assert b"the parent ended" in done.stderr
    assert done.stdout == b""


def test_root_is_never_a_candidate() -> None:
    with pytest.raises(ValueError, match="root"):
        Confinement("/tmp", 1, NOTHING, {}, (), uid=0, gid=0)


def test_uid_is_required_where_the_host_can_give_one() -> None:
    with pytest.raises(ValueError, match="uid"):
        Confinement("/tmp", 1, Isolation(True, 0, False, False, ()), {}, ())


def test_process_with_threads_is_not_confined(tmp_path: Path) -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        with pytest.raises(EvaluatorError, match="single thread"):
            confine(Confinement(str(tmp_path), 1, NOTHING, {}, ()))
    finally:
        release.set()
        thread.join()


def test_family_can_be_allowed(strong: Any) -> None:
    """AF_UNIX alone, should a driver need it."""
    source = f"""
import socket
from server.sandbox import syscall_filter
syscall_filter.load(socket_families=({int(socket.AF_UNIX)},))
socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close()
try:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM)
except PermissionError:
    print("refused")
"""
    with strong.slot() as slot, strong.unconfined(slot, source) as process:
        assert process.communicate(timeout=30)[0] == b"refused\n"
