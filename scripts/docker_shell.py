"""Runs a command under what `docker run` gives by default, on a machine without an engine. Needs root and util-linux.

    python scripts/docker_shell.py --profile default.json -- kernel-env doctor
    python scripts/docker_shell.py --profile default.json --uid 1000 -- kernel-env doctor

The profile is Docker's default seccomp profile (`profiles/seccomp/default.json` of the moby repository), which is not
part of this one. What is given: the 14 default capabilities and no others, the profile's filter, control groups mounted
read-only. What is not imitated: the other namespaces, the masked files of /proc, AppArmor.
"""

import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyseccomp

CAPABILITIES = (
    "chown", "dac_override", "fsetid", "fowner", "mknod", "net_raw", "setgid", "setuid", "setfcap", "setpcap",
    "net_bind_service", "sys_chroot", "kill", "audit_write",
)  # fmt: skip
"""What a container's root has by default."""

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CLONE_NEWNS = 0x0002_0000
ACTIONS = {"SCMP_ACT_ALLOW": pyseccomp.ALLOW, "SCMP_ACT_ERRNO": None}
COMPARISONS = {
    f"SCMP_CMP_{name}": getattr(pyseccomp, name) for name in ("EQ", "NE", "LT", "LE", "GT", "GE", "MASKED_EQ")
}


def applies(rule: dict[str, Any]) -> bool:
    """Whether a rule of the profile counts here, with the default capabilities on this architecture."""
    architecture = ARCHITECTURES[platform.machine()]
    has = {f"CAP_{name.upper()}" for name in CAPABILITIES}
    wanted, unwanted = rule.get("includes", {}), rule.get("excludes", {})
    if not set(wanted.get("caps", ())) <= has or set(unwanted.get("caps", ())) & has:
        return False
    return architecture in wanted.get("arches", (architecture,)) and architecture not in unwanted.get("arches", ())


def arguments_of(rule: dict[str, Any]) -> Iterator[Any]:
    """Conditions of a rule as libseccomp takes them."""
    for condition in rule.get("args") or ():
        comparison = COMPARISONS[condition["op"]]
        if condition["op"] == "SCMP_CMP_MASKED_EQ":
            yield pyseccomp.Arg(condition["index"], comparison, condition["value"], condition.get("valueTwo", 0))
        else:
            yield pyseccomp.Arg(condition["index"], comparison, condition["value"])


def load(profile: dict[str, Any]) -> int:
    """Install the profile's filter in this process; returns the number of rules.

    Raises:
        OSError: The kernel refused.
        KeyError: The profile uses something newer than this program knows.
    """
    refusal = pyseccomp.ERRNO(profile.get("defaultErrnoRet", 1))
    filtered = pyseccomp.SyscallFilter(refusal)
    filtered.set_attr(pyseccomp.Attr.CTL_NNP, 0)  # Docker does not set no_new_privs either
    count = 0
    for rule in filter(applies, profile["syscalls"]):
        action = ACTIONS[rule["action"]] or pyseccomp.ERRNO(rule.get("errnoRet", 1))
        if action == refusal and not rule.get("args"):
            continue  # libseccomp refuses rules that change nothing
        for name in rule["names"]:
            try:
                filtered.add_rule(action, name, *arguments_of(rule))
                count += 1
            except (OSError, ValueError):  # a system call of another architecture, or newer than the library
                continue
    filtered.load()
    return count


def make_control_groups_read_only() -> None:
    """In a mount namespace of this process's own.

    Raises:
        OSError: The kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    for target in (target for target in mounts if target.startswith("/sys/fs/cgroup")):
        subprocess.run(["mount", "-o", "remount,bind,ro", target], check=True)


def command_line(command: Sequence[str], uid: int) -> list[str]:
    """The command, started with the default capabilities or as a user without any."""
    bounding = ",".join(["-all", *(f"+{name}" for name in CAPABILITIES)])
    user = ["--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid else []
    return ["setpriv", f"--bounding-set={bounding}", "--inh-caps=-all", *user, "--", *command]


def main() -> None:
    """Entry point; becomes the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", type=Path, required=True, help="Docker's default seccomp profile")
    parser.add_argument("--uid", type=int, default=0, help="run as this user instead of root")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    profile = json.loads(arguments.profile.read_text(encoding="utf-8"))
    make_control_groups_read_only()
    line = command_line(arguments.command, arguments.uid)
    count = load(profile)
    print(f"docker_shell: {count} rules, {len(CAPABILITIES)} capabilities, uid {arguments.uid}", file=sys.stderr)
    os.execvp(line[0], line)  # noqa: S606 becoming the command is the point


if __name__ == "__main__":
    main()
