#!/usr/bin/env bash
# Every measurement of docs/benchmarks.md in one run on one machine: figures of different runs do not compare.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${PY:=python3}" "${KERNEL_ENV_TASKS:?set it to a checkout of KernelBench}"
kernels=examples/kernels
relu=level1/19_ReLU

pairs=("$relu=$kernels/relu_triton.py=5" "$relu=$kernels/relu_cuda.py=3" "$relu=$kernels/relu_load_inline_cuda.py=2")
for name in softmax gelu layer_norm rms_norm sum_reduce matmul linear_gelu; do
    pairs+=("$name=$kernels/${name}_triton.py=2")
done
for name in gelu layer_norm sum_reduce matmul; do
    pairs+=("$name=$kernels/${name}_cuda.py")
done

"$PY" -m bench.latency --out bench/data/latency.json "${pairs[@]}"
"$PY" -m bench.kernelbench --checkout "$KERNEL_ENV_TASKS" --out bench/data/kernelbench.json \
    "$relu=$kernels/relu_triton.py=triton" "$relu=$kernels/relu_load_inline_cuda.py=cuda"
"$PY" -m bench.throughput --out bench/data/throughput_cuda.json --seconds 30 \
    "${pairs[@]/%=[0-9]/}"
"$PY" -m bench.accuracy --out bench/data/accuracy.json
"$PY" -m bench.report
