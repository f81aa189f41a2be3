#!/usr/bin/env bash
# cuda_wheel_test.sh TORCH: a machine with torch's CUDA wheel, whose headers of CUDA lack crt/, and without a toolkit or nvcc
# configures, with CYTRA_CUDA=ON too; and its headers are taken where they are whole.
set -euo pipefail
torch=$1
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
unset CUDA_HOME CUDACXX
wheel=$work/site/nvidia/cu13/include
mkdir -p "$work/site/torch/lib" "$wheel" "$work/site/nvidia/nccl/include" "$work/project/src/training/cuda"
touch "$work/site/torch/lib/libtorch_cuda.so" "$work/site/nvidia/nccl/include/nccl.h"
echo '#include "crt/host_config.h"' >"$wheel/cuda_runtime.h"
echo '#include <cuda_runtime.h>' >"$work/project/src/training/cuda/nccl.cpp"
cat >"$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(wheel LANGUAGES CXX)
add_library(cytra_flags INTERFACE)
add_library(cytra_torch INTERFACE)
include(${CYTRA_ROOT}/cmake/CytraNccl.cmake)
include(${CYTRA_ROOT}/cmake/CytraCuda.cmake)
if(TARGET cytra_nccl)
  message(STATUS "nccl is built")
endif()
CMAKE
configure() {  # stdout and stderr together; an error shows
  cmake -S "$work/project" -B "$work/build" -DCYTRA_ROOT="$root" -DCYTRA_CUDA=ON -DCMAKE_CUDA_COMPILER='' \
    -DCYTRA_TORCH_LIB="$work/site/torch/lib" -DCYTRA_TORCH_INCLUDE="$torch/include" \
    "-DCMAKE_IGNORE_PATH=/usr/local/cuda/include;/usr/include;/usr/local/include" 2>&1
}
expect() {
  grep -qF -- "$1" <<<"$output" || { printf 'expected "%s" in:\n%s\n' "$1" "$output" >&2; exit 1; }
}
output=$(configure) || { printf "%s\n" "$output" >&2; exit 1; }
expect 'No headers of CUDA or NCCL'
mkdir "$wheel/crt"  # there, and still not enough
echo '#error no nv/target' >"$wheel/crt/host_config.h"
output=$(configure) || { printf "%s\n" "$output" >&2; exit 1; }
expect 'torch'\''s NCCL does not compile'
expect 'no nv/target'
echo >"$wheel/crt/host_config.h"
output=$(configure) || { printf "%s\n" "$output" >&2; exit 1; }
expect 'nccl is built'
