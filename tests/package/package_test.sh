#!/usr/bin/env bash
# package_test.sh BUILD TORCH: installs BUILD, moves the folder, runs its programs, and builds and runs the example with it.
# The folder is always the same one: the compiler's cache works then.
set -euo pipefail
build=$1 torch=$2
example=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../examples/train_your_task" && pwd)
work=$build/tests/package
fail() { echo "package_test: $*" >&2; exit 1; }

rm -rf -- "$work"
mkdir -p -- "$work"
cmake --install "$build" --prefix "$work/installed" --strip >"$work/install.log"
mv -- "$work/installed" "$work/moved"
here=$work/moved
cd -- "$work"
"$here/bin/train" --version
"$here/bin/train" --help >help.txt
"$here/bin/train" experiment=im2im/segmentation --cfg job >job.yaml
"$here/bin/train" --describe task | grep -q SegmentationTask || fail 'the installed train does not find its engine'
for file in "$here"/bin/* "$here"/lib*/*.so "$build"/bin/* "$build"/lib/*.so; do
  if readelf -d "$file" | grep -qE 'R(UN)?PATH.*(\[:|::|:\])'; then fail "$file: its RUNPATH names the folder where the user stands"; fi
done
if [[ -f $build/tests/fakegpu/preload ]]; then  # the installed programs find torch's CUDA libraries, too
  env -u LD_PRELOAD python3 -B "${example%/*/*}/tests/fakegpu/check.py" "$here/bin" "$build/tests/fakegpu" --only 'predict CUDA graph'
fi
if grep -rIlF -e "$build" -e "$work" -e "$torch" -- "$here"; then fail 'these installed files name a folder of this machine'; fi

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S "$example" -B installed -DCMAKE_PREFIX_PATH="$here" -DCYTRA_TORCH="$torch" "${launcher[@]}"
cmake --build installed
OMP_DISPLAY_ENV=VERBOSE installed/train_your_task 2>messages.txt | tee results.txt
if ldd installed/train_your_task | grep -q jemalloc; then fail "the library brought its host an allocator"; fi
if grep -q "GOMP_SPINCOUNT = '1000'" messages.txt; then fail "the library set its host's threads"; fi
awk -F ': ' '{ value[$1] = $2 }
  END { exit !(value["loss after"] < 0.6 * value["loss before"] && value["best checkpoint"] != "") }' results.txt ||
  fail 'the loss did not fall'

# A program that predicts.
cmake -S "${example%/*}/predict_in_cpp" -B predicts -DCMAKE_PREFIX_PATH="$here" -DCYTRA_TORCH="$torch" "${launcher[@]}" >predicts.log
cmake --build predicts
"$here/bin/generate_samples" --output samples --train 1 --valid 1 --test 1 --size 128 2>/dev/null
"$here/bin/train" experiment=im2im/segmentation data.path=samples paths.output_dir=trained trainer.max_steps=1 \
  trainer.accelerator=cpu 'model.filters=[4,8,8]' 'patch_shape=[32,32]' >/dev/null 2>&1
predicts/predict_in_cpp trained/checkpoints/last.ckpt samples/images/test_0000_raw.ome.tif mask.ome.tif | tee predicts.txt
grep -q '^mask.ome.tif: 128 x 128$' predicts.txt && grep -q '^a tensor: 96 x 80, by .*[a-z]' predicts.txt ||
  fail 'the example did not predict'
# What it writes of a folder by the library is what the program writes.
mkdir raws
cp samples/images/*_raw.ome.tif raws
predicts/predict_folder trained/checkpoints/last.ckpt raws library >library.txt
"$here/bin/predict" checkpoint.ckpt_path=trained/checkpoints/last.ckpt data.path=raws paths.output_dir=program \
  predict.measurements=true predict.contours=geojson trainer.accelerator=auto inference_args=null >/dev/null 2>&1
[[ $(wc -l <library.txt) == 12 ]] || fail 'the example did not write four files for each image'
# The program's own training is predicted, too.
"$here/bin/predict" "checkpoint.ckpt_path=$(awk -F ': ' '$1 == "best checkpoint" { print $2 }' results.txt)" data.path=raws \
  paths.output_dir=own >/dev/null 2>own.txt || fail "the example's checkpoint is not predicted: $(tail -n 1 own.txt)"
for file in library/*; do cmp "$file" "program/${file#*/}"; done

# A program whose threads share a model.
cmake -S "${example%/*}/serve_in_cpp" -B serves -DCMAKE_PREFIX_PATH="$here" -DCYTRA_TORCH="$torch" "${launcher[@]}" >serves.log
cmake --build serves
serves/serve_in_cpp trained/checkpoints/last.ckpt | tee serves.txt
grep -q '^answered: 80 of 80, in batches of ' serves.txt || fail 'the example did not answer'

# Without torch for the io part; and what is missing is said.
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(reads_images LANGUAGES CXX)
find_package(Cytra REQUIRED COMPONENTS ${PART})
add_executable(reads_images main.cpp)
target_link_libraries(reads_images PRIVATE Cytra::io)
CMAKE
cat >main.cpp <<'CPP'
#include <cstdio>

#include <cytra/base/error.h>
#include <cytra/io/reader.h>

int main(int, char** argv) try {
  const auto shape = cytra::io::read_image(argv[1]).shape;
  std::printf("%d x %d\n", static_cast<int>(shape[2]), static_cast<int>(shape[3]));
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return cytra::exit_code(error);
}
CPP
env -u CYTRA_TORCH cmake -S . -B io -DPART=io -DCMAKE_PREFIX_PATH="$here" "${launcher[@]}" >io.log
cmake --build io
printf 'P' >wrong.png
code=0
io/reads_images wrong.png || code=$?
((code == 2)) || fail "a damaged image ended reads_images with $code, not 2"
if env -u CYTRA_TORCH cmake -S . -B none -DCMAKE_PREFIX_PATH="$here" >none.log 2>&1; then fail 'no torch was asked for'; fi
grep -q 'LibTorch not found; name it' none.log || fail "not said that torch is missing: $(<none.log)"
cmake -S "$example" -B from_build -DCytra_DIR="$build" >from_build.log  # our build folder is a package, too
