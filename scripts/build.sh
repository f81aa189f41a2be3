#!/usr/bin/env bash
# build.sh [PRESET=release] [arguments of cmake --build...]: sets up, configures and builds the programs, which end in
# build/PRESET/bin; with `--target all` tests and benchmarks, too. CYTRA_CUDA=ON|OFF, CYTRA_TORCH, CC and CXX are passed on. Sourced, it leaves `root` and `build`.
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"

preset=release
if [[ $# -gt 0 && $1 != -* ]]; then
  preset=$1
  shift
fi
build=$root/build/$preset
if [[ $# -eq 0 ]]; then set -- --target programs; fi

# A torch source file takes up to 2 GB to compile: fewer jobs than cores where memory is short.
default_jobs() {
  local cores gb limit
  cores=$(nproc)
  gb=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit != max ]] && ((limit >> 30 < gb)); then gb=$((limit >> 30)); fi
  local jobs=$((gb / 2 < cores ? gb / 2 : cores))
  echo $((jobs > 0 ? jobs : 1))
}

configure() {
  local options=(-UCYTRA_TORCH_INCLUDE "-DCYTRA_TORCH=$torch")
  if [[ -n ${CYTRA_CUDA:-} ]]; then options+=("-DCYTRA_CUDA=$CYTRA_CUDA"); fi
  if [[ -n ${CYTRA_OPENVINO:-} ]]; then options+=("-DCYTRA_OPENVINO=$CYTRA_OPENVINO"); fi
  if ! grep -qs "\"name\": \"$preset\"" "$root"/CMake*Presets.json; then
    fail 2 "no preset $preset in CMakePresets.json (release, dev, asan, tsan, cuda)"
  fi
  if ! { mkdir -p -- "$build" && : >"$build/configure.log"; } 2>/dev/null; then
    fail 2 "can't write to $build: check its owner and permissions"
  fi
  (cd -- "$root" && quietly "$build/configure.log" cmake --preset "$preset" "${options[@]}") || {
    grep -v '^-- ' "$build/configure.log" | tail -n 30 >&2
    fail 2 "cmake could not configure the preset $preset; log: $build/configure.log
  After moving the checkout or changing the compiler: rm -rf '$build', then try again"
  }
}

compile() {
  local code=0
  export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(default_jobs)}"
  if [[ -t 1 ]]; then
    cmake --build "$build" "$@" || code=$?
  else
    quietly "$build/build.log" cmake --build "$build" "$@" || code=$?
    if [[ $code -ne 0 ]]; then
      if grep -q '^FAILED:' "$build/build.log"; then
        sed -n '/^FAILED:/,$p' "$build/build.log" | sed -n '1,200p' >&2
      else
        tail -n 30 "$build/build.log" >&2
      fi
      say "log: $build/build.log"
    fi
  fi
  [[ $code -eq 0 ]] || fail "$code" "the build of the preset $preset failed"
}

start=$SECONDS
configure
compile "$@"
say "build: programs in $build/bin after $((SECONDS - start)) s"
