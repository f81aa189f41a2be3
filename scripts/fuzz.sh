#!/usr/bin/env bash
# fuzz.sh [SECONDS [TARGET...]]: lets libFuzzer look for inputs that break the config system, a reader of files, networks or requests;
# SECONDS (60) for each target. Needs LibTorch, and clang with its runtime (Debian: clang, libclang-rt-dev). What it finds lies in
# build/fuzz/found.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
seconds=${1:-60}
shift || true
cmake --preset fuzz >/dev/null
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for file in tests/fuzz/*_fuzz.cpp; do targets+=("$(basename "$file" .cpp)"); done
fi
cmake --build build/fuzz --target "${targets[@]}"
python3 tests/fuzz/make_seeds.py build/fuzz/corpus
mkdir -p build/fuzz/found
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
failed=0
for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/${target%_fuzz}
  echo "== $target, $seconds s"
  limits=(-timeout=10 -max_len=8192)
  if [ "$target" = exported_fuzz ]; then limits=(-timeout=60 -max_len=32768); fi  # which runs networks, of larger seeds
  build/fuzz/bin/"$target" -max_total_time="$seconds" "${limits[@]}" -rss_limit_mb=3072 -print_final_stats=1 \
    -verbosity=1 -artifact_prefix=build/fuzz/found/"$target"- "$corpus" 2>build/fuzz/"$target".log || failed=1
  grep -E "^stat::number_of_executed_units|^==.*ERROR|^SUMMARY|runtime error|broken promise" build/fuzz/"$target".log || true
done
exit $failed
