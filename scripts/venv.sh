#!/usr/bin/env bash
# Makes or updates the virtual environment: scripts/venv.sh DIR
#
# Interpreter: $PYTHON if set, else the first of python3, python3.12, python3.11 that runs and is 3.11 or 3.12.
# If that interpreter already has a CUDA build of torch, the environment sees its packages and keeps its torch and
# triton, which fit the host's driver; constraints.txt, which pins other versions, is not applied then. Otherwise
# everything is installed as constraints.txt pins it.
# pip's own settings (PIP_INDEX_URL, PIP_FIND_LINKS, PIP_NO_INDEX, ...) are obeyed; nothing here names an index.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1

usable() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.12 python3.11}; do
        # A name on PATH may be a version manager's shim that refuses to run, so each one is tried.
        if usable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "venv: no Python 3.11 or 3.12 among: ${PYTHON:-python3 python3.12 python3.11}. Install one, or set PYTHON." >&2
    return 1
}

python=$(find_python)
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "venv: $python has no venv module. On Debian: apt-get install python3-venv" >&2
    exit 1
fi
if ! "$python" -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null; then
    echo "venv: Python.h is missing; load_inline and Triton need it. On Debian: apt-get install python3-dev" >&2
fi

if "$python" -c 'import torch, sys; sys.exit(torch.version.cuda is None)' 2>/dev/null; then
    "$python" -m venv --system-site-packages "$venv"
    if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
        # The interpreter is itself of a virtual environment, and those do not nest: name its packages by path.
        "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
            >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/host_torch.pth"
    fi
    pins=$(mktemp)
    trap 'rm -f "$pins"' EXIT
    "$python" -m pip list --format=freeze 2>/dev/null | grep -E '^(torch|triton|numpy)==' >"$pins"
    echo "venv: keeping the torch of $python: $(tr '\n' ' ' <"$pins")" >&2
else
    "$python" -m venv "$venv"
    pins=constraints.txt
fi

pip=("$venv/bin/python" -m pip --disable-pip-version-check)
# The build back end goes into the environment itself, so that a host without an index needs no build isolation.
"${pip[@]}" install --quiet --constraint "$pins" 'setuptools>=77.0.3'
"${pip[@]}" install --quiet --constraint "$pins" --no-build-isolation --editable '.[server,dev]'
