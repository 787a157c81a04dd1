#!/usr/bin/env bash
# Renews constraints.txt: resolves the server and dev extras in a fresh environment and records every version.
# Local version labels such as +cpu are cut, so that the same file serves the CPU and the CUDA build of torch.
set -euo pipefail
cd "$(dirname "$0")/.."
torch=${TORCH:-2.13.0}
triton=${TRITON:-3.7.1} # the only version that the CUDA build of torch 2.13.0 accepts
cuda_toolkit=13.0.3     # likewise
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check \
    "torch==$torch" "triton==$triton" "nvidia-ml-py==13.580.126" '.[server,dev]'
{
    echo "# The tested set of versions. Written by scripts/lock.sh; applied by the Makefile and the Dockerfile."
    echo "# torch's CUDA build pins its own CUDA libraries; only what it leaves open is listed at the end."
    "$work/venv/bin/pip" freeze --disable-pip-version-check --all --exclude openenv-kernel-env --exclude pip |
        grep -v '^nvidia-cu\|^cuda-' | sed -E 's/^([^ ]+)( @ .*)$/\1/; s/\+[a-z0-9.]+$//'
    echo "cuda-bindings==13.0.3"
    echo "cuda-pathfinder==1.9.1"
    echo "cuda-toolkit==$cuda_toolkit"
    echo "nvidia-nvjitlink==13.0.88"
} >"$work/constraints.txt"
mv "$work/constraints.txt" constraints.txt
