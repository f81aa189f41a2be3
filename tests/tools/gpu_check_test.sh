#!/usr/bin/env bash
# gpu_check_test.sh BUILD: scripts/gpu_check.sh without a GPU, and with one that is made up, to the table of its report.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/made up/tests" "$scratch/made up/benchmarks" "$scratch/made up/lib"
export PATH=$scratch/bin:$PATH
expect() { # expect CODE TEXT COMMAND...: its exit code, and what it says
  local code=0 expected=$1 text=$2
  shift 2
  "$@" >"$scratch/said" 2>&1 || code=$?
  if [[ $code -ne $expected ]] || ! grep -qF -- "$text" "$scratch/said"; then
    echo "$*: exit code $code, expected $expected and '$text' in:" >&2
    cat "$scratch/said" >&2
    exit 1
  fi
}
program() { printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod +x "$1"; }
check=$root/scripts/gpu_check.sh

program "$scratch/bin/nvidia-smi" 'exit 9'
expect 77 'training_2d          passed' "$check" "$1" "$scratch/gpu.json"
expect 77 'no GPU here' "$check" "$scratch/made up" "$scratch/gpu.json"
[[ ! -e $scratch/gpu.json ]]
echo 'no code at all' >"$scratch/made up/lib/libcytra_cuda.so"
expect 1 'has no code for sm_80' "$check" "$scratch/made up"
rm "$scratch/made up/lib/libcytra_cuda.so"
expect 2 'no folder' "$check" "$scratch/nowhere"
expect 2 'usage' "$check" --help me please

program "$scratch/bin/nvidia-smi" 'echo "Made Up GPU, 580.1, 8192 MiB, 9.0"'
program "$scratch/made up/tests/test_cuda" 'echo "[  FAILED  ] Cuda.Something"; exit 1'
# shellcheck disable=SC2016  # $1 is the program's
program "$scratch/made up/benchmarks/bench_device" \
  'echo "{\"what\": \"$1 step\", \"how\": \"fp32\", \"value\": 1.25, \"unit\": \"ms\"}"'
expect 1 'Cuda.Something' "$check" "$scratch/made up" "$scratch/gpu.json"
# However much fails, and however long it takes, the report is written.
program "$scratch/made up/tests/test_cuda" \
  'i=0; while [ $i -lt 20000 ]; do echo "[  FAILED  ] Cuda.Number$i"; i=$((i + 1)); done; exit 1'
rm "$scratch/gpu.json"
expect 1 'Cuda.Number19' "$check" "$scratch/made up" "$scratch/gpu.json"
[[ -s $scratch/gpu.json ]] && ! grep -qF 'Cuda.Number20' "$scratch/said"
program "$scratch/bin/timeout" 'shift 3; case $1 in env) exit 124 ;; esac; exec "$@"'  # the tests come to no end
expect 1 'out of time' "$check" "$scratch/made up" "$scratch/gpu.json"
grep -qF '"out of time"' "$scratch/gpu.json"
rm "$scratch/bin/timeout"
program "$scratch/made up/tests/test_cuda" 'exit 0'
expect 0 'tests                passed' "$check" "$scratch/made up" "$scratch/gpu.json"
expect 0 '"measurement": "training_3d: training_3d step", "ours": {"fp32": 1.25}' python3 -B "$root/benchmarks/run.py" gpu --from "$scratch/gpu.json" \
  --docs "$scratch/figures.json" --write
grep -qF 'Made Up GPU' "$scratch/figures.json"
echo '{}' >"$scratch/gpu.json"
expect 1 'is not a report' python3 -B "$root/benchmarks/run.py" gpu --from "$scratch/gpu.json"
expect 2 'go together' python3 -B "$root/benchmarks/run.py" gpu
