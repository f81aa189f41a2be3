#!/usr/bin/env bash
# gpu_check.sh [FOLDER] [OUTPUT=gpu.json]: what a machine with an NVIDIA GPU says of Cytra: the tests that need one and
# benchmarks, each with its own limit, in some four minutes; then, where python3 has them, the same by MONAI and Lightning
# (five minutes more). One JSON file comes of it, which `benchmarks/run.py gpu --from gpu.json --write` puts into
# docs/benchmarks.json. FOLDER: a build (default: build/release), or an unpacked bundle (scripts/bundle.sh --gpu), where this
# script lies beside `run`.
# Exit code: 0 all passed; 1 a test or benchmark failed; 2 wrong use; 77 no GPU here: checked was what can be without.
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
if [[ $# -gt 2 || ${1:-} == -* ]]; then
  echo 'usage: gpu_check.sh [FOLDER=build/release] [OUTPUT=gpu.json]' >&2
  exit 2
fi
folder=$here/../build/release
[[ ! -x $here/run ]] || folder=$here
folder=$(CDPATH='' cd -- "${1:-$folder}" 2>/dev/null && pwd) || {
  echo "error: no folder ${1:-$folder}: scripts/build.sh release --target all, or name one" >&2
  exit 2
}
output=${2:-gpu.json}

# program NAME: the words that start a program, a test or a benchmark of the folder, in `words`.
program() {
  local name=$1
  if [[ -x $folder/run ]]; then
    case $name in test_* | bench_*) name=tests/$name ;; esac
    words=("$folder/run" "$name")
    [[ $name != tests/* || -x $folder/$name ]]
  else
    case $name in
      test_*) words=("$folder/tests/$name") ;;
      bench_*) words=("$folder/benchmarks/$name") ;;
      *) words=("$folder/bin/$name") ;;
    esac
    [[ -x ${words[0]} ]]
  fi
}

# architectures LIBRARY: of the device code in it ("75 80 ... ptx90"), read from its fat binaries.
architectures() {
  python3 - "$1" <<'PYTHON'
import struct, sys
data, found, at = open(sys.argv[1], "rb").read(), set(), 0
while (at := data.find(b"\x50\xed\x55\xba", at)) >= 0:  # a fat binary: magic, version, header's size, size
    _, header, size = struct.unpack_from("<HHQ", data, at + 4)
    entry, end = at + header, at + header + size
    while entry < end:
        kind, _, header, size = struct.unpack_from("<HHIQ", data, entry)
        found.add((kind == 1, struct.unpack_from("<I", data, entry + 28)[0]))
        entry += header + size
    at = end
print(*(("ptx" if is_ptx else "") + str(arch) for is_ptx, arch in sorted(found)))
PYTHON
}

failures=0
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
: >"$scratch/steps"
# step NAME LIMIT COMMAND...: its lines that are JSON objects become the rows of the report.
step() {
  local name=$1 limit=$2 code=0 begin=$SECONDS status=passed rows
  shift 2
  timeout -k 5 "$limit" "$@" >"$scratch/out" 2>"$scratch/err" || code=$?
  [[ $code -eq 0 ]] || status=failed
  [[ $code -ne 124 && $code -ne 137 ]] || status='out of time'
  rows=$(grep '^{' "$scratch/out" | paste -sd , - || true)
  printf '{"name": "%s", "status": "%s", "exit_code": %d, "seconds": %d, "rows": [%s]}\n' \
    "$name" "$status" "$code" $((SECONDS - begin)) "$rows" >>"$scratch/steps"
  printf '%-20s %-12s %4d s\n' "$name" "$status" $((SECONDS - begin)) >&2
  if [[ $status != passed ]]; then
    failures=$((failures + 1))
    { grep -E '\[  FAILED  \]|Failure|^error' "$scratch/out" "$scratch/err" || tail -n 5 "$scratch/err"; } |
      sed -n 's/^[^:]*://; s/^/    /; 1,20p' >&2  # reads to the end: nothing before it meets a closed pipe
  fi
}

check_kernels() {
  local library=$folder/lib/libcytra_cuda.so found arch
  if [[ ! -f $library ]]; then
    echo "kernels: this build has no libcytra_cuda.so (scripts/build.sh cuda)" >&2
    return
  fi
  found=" $(architectures "$library") "
  echo "kernels: compiled for$found" >&2
  for arch in 80 86 89 90; do  # and Blackwell's where nvcc knew it
    if [[ $found != *" $arch "* ]]; then
      echo "error: $library has no code for sm_$arch" >&2
      failures=$((failures + 1))
    fi
  done
}

check_kernels
if ! gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader 2>/dev/null) ||
  [[ -z $gpu ]]; then
  echo 'no GPU here (nvidia-smi shows none): the rest is tried out on the CPU' >&2
  if program test_ops; then step functors 60 "${words[@]}" --gtest_filter='*Functor*'; fi
  if program bench_device; then
    for subject in transfer loader preprocessing inference sliding_window_2d training_2d; do
      step "$subject" 60 "${words[@]}" "$subject" cpu 0.01 small
    done
  fi
  [[ $failures -eq 0 ]] || exit 1
  exit 77
fi
gpu=${gpu%%$'\n'*}
echo "GPU: $gpu" >&2

if program test_cuda; then step tests 100 env CYTRA_REQUIRE_GPU=1 "${words[@]}"; fi
programs=$here/../tests/cuda/programs.py
if [[ -f $programs ]] && program train; then
  starter=$folder/bin
  [[ ! -x $folder/run ]] || starter=$folder/run
  step programs 180 python3 -B "$programs" "$starter"
fi
program bench_device || {
  echo "error: no bench_device in $folder: build all targets" >&2
  exit 2
}
while read -r subject limit seconds; do
  step "$subject" "$limit" "${words[@]}" "$subject" gpu "$seconds"
done <<'SUBJECTS'
transfer 20 0.5
loader 20 3
preprocessing 20 2
inference 90 0.5
sliding_window_2d 40 1
sliding_window_3d 120 3
training_2d 120 0.7
training_3d 90 1.5
SUBJECTS
peer=$here/../benchmarks/gpu_peer.py
[[ -f $peer ]] || peer=$here/tests/gpu_peer.py
if python3 -c 'import lightning, monai, torch' 2>/dev/null; then
  while read -r subject limit seconds; do
    step "$subject, peers" "$limit" python3 "$peer" "$subject" "$seconds"
  done <<'SUBJECTS'
training_2d 140 0.6
training_3d 100 1
inference 120 0.2
sliding_window_2d 40 0.7
sliding_window_3d 100 1
SUBJECTS
fi
{
  printf '{"gpu": "%s", "date": "%s", "peers": "%s", "kernels": "%s", "steps": [\n' "$gpu" "$(date -u +%F)" \
    "$(python3 -c 'import torch, monai, lightning
print(f"torch {torch.__version__}, monai {monai.__version__}, lightning {lightning.__version__}")' 2>/dev/null)" \
    "$([[ ! -f $folder/lib/libcytra_cuda.so ]] || architectures "$folder/lib/libcytra_cuda.so")"
  paste -sd , "$scratch/steps" | sed 's/},{"name"/},\n{"name"/g'
  printf ']}\n'
} >"$output.part"
mv -f -- "$output.part" "$output"
echo "$output: benchmarks/run.py gpu --from $output --write puts its figures into docs/benchmarks.json" >&2
printf '%s\n' "$output"
[[ $failures -eq 0 ]]
