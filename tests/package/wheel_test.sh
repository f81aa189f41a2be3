#!/usr/bin/env bash
# wheel_test.sh BUILD TORCH: makes the wheel, and lets a user install it in a fresh environment, train and predict. So that this takes
# seconds, not 3 GB of downloads, the environment has links to TORCH and to what lies beside it in place of pip's own copies.
set -euo pipefail
build=$1 torch=$2
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
fail() { echo "wheel_test: $*" >&2; exit 1; }
skip() { echo "wheel_test: skipped: $*" >&2; exit 77; }
python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || skip 'no Python 3.10 or newer that makes environments'
[[ -f $torch/version.py ]] || skip "$torch is not the torch of a Python environment"
[[ $build == "$root"/build/* ]] || skip "$build is no build of scripts/build.sh"
work=$build/tests/wheel
rm -rf -- "$work"
mkdir -p -- "$work"
code=0
wheel=$(CYTRA_TORCH=$torch "$root/scripts/package.sh" wheel "${build##*/}" 2>"$work/package.log") || code=$?
if [[ $code == 4 || (! $(command -v patchelf) && $EUID != 0) ]]; then skip "$(tail -n 1 "$work/package.log")"; fi
[[ $code == 0 ]] || fail "package.sh: $(<"$work/package.log")"
cd -- "$work"

# Whoever has no compiler and nothing of ours on the path.
user() { env -i HOME="$work" PATH="$work/venv/bin:/usr/bin:/bin" LANG=C.UTF-8 "$@"; }
python3 -m venv venv
user python -m pip --disable-pip-version-check install --quiet --no-index --no-deps "$wheel"
site=$(user python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
said() { # said CODE TEXT COMMAND...: its exit code, and what its messages hold
  local code=0 expected=$1 text=$2
  shift 2
  user "$@" >said.txt 2>&1 || code=$?
  if [[ $code != "$expected" ]] || ! grep -qF -- "$text" said.txt; then
    fail "$*: exit code $code, expected $expected and '$text' in: $(<said.txt)"
  fi
}
said 2 'torch is not installed' cytra train --help
mkdir -p "$site/torch/lib"
touch "$site/torch/lib/libtorch_cpu.so"
echo "__version__ = '2.8.1+cpu'" >"$site/torch/version.py"
said 2 'torch 2.8.1+cpu is installed, but this Cytra needs' cytra train --help
rm -r "$site/torch"

for name in torch nvidia; do
  if [[ -e ${torch%/*}/$name ]]; then ln -s "${torch%/*}/$name" "$site/$name"; fi
done
version=${wheel##*/cytra-} count=0
for program in "$site"/cytra_programs/bin/*; do
  words=("${program##*/}" --version)
  if [[ $program != */cytra ]]; then words=(cytra "${words[@]}"); fi
  said 0 "${version%%-*}" "${words[@]}"
  count=$((count + 1))
done
((count >= 10)) || fail "$count programs are in the wheel"
said 0 'libtiff' cytra --licenses
said 0 "DynUNet" cytra train --describe DynUNet
said 0 '-F _cytra_cytra cytra' cytra train -sc install=bash
mv "$site/cytra_programs/lib/libcytra_io.so" .
said 2 'libcytra_io.so: cannot open shared object file: No such file or directory; expected torch' cytra train --describe DynUNet
mv libcytra_io.so "$site/cytra_programs/lib/"
# Whatever is loaded is the wheel's, torch's or the C library's.
find "$site/cytra_programs/bin" "$site/cytra_programs/lib" -type f ! -name 'libcytra_cuda.so' ! -name 'libcytra_nccl.so' \
  -exec env -i ldd {} + >ldd.txt 2>/dev/null || true
if grep -E '=> /' ldd.txt | grep -vE "=> ($site|$torch|.*/nvidia)/|/(libc|libm|libdl|librt|libpthread|libutil|libresolv|libgcc_s|libstdc\+\+)\.so"; then
  fail 'these libraries are taken from the machine'
fi
if grep -rIlF -e "$root/" -- "$site/cytra_programs"; then fail 'these files name a folder of this machine'; fi
# shellcheck disable=SC2016  # $ORIGIN is the loader's
if readelf -d "$site"/cytra_programs/{bin/*,lib/*} | grep -E 'R(UN)?PATH' | grep -vE '\[\$ORIGIN[^:]*(:\$ORIGIN[^:]*)*\]'; then
  fail 'these RUNPATHs name a folder of this machine'
fi

small=('model.filters=[8,16]' 'patch_shape=[64,64]' trainer.accelerator=cpu)
user cytra generate_samples --output samples --train 4 --valid 2 --test 1 --size 128 2>/dev/null
user cytra train experiment=im2im/segmentation data.path=samples trainer.max_epochs=2 "${small[@]}" paths.output_dir=trained >train.txt 2>train.log ||
  fail "train: $(<train.log)"
grep -q 'predict: *cytra predict checkpoint.ckpt_path=' train.log || fail "no line that predicts: $(<train.log)"
said 2 'scripts/build.sh (it installs' cytra process_video samples/images/test_0000_raw.ome.tif out.mp4 --ckpt trained/checkpoints/last.ckpt
for engine in openvino eager; do
  user cytra predict checkpoint.ckpt_path=trained/checkpoints/last.ckpt data.path=samples/test.csv data.with_target=true \
    performance.backend=$engine paths.output_dir=$engine >"$engine.txt" 2>"$engine.log" || fail "predict: $(<"$engine.log")"
  if ! grep -qE '^dice: 0\.[0-9]+' "$engine.txt" || ! compgen -G "$engine/test_0000_raw*.tif" >/dev/null; then
    fail "no mask by $engine: $(<"$engine.txt")"
  fi
done
user cytra predict checkpoint.ckpt_path=nuclei data.path=samples/test.csv paths.output_dir=at_hand 2>at_hand.log || fail "a model at hand: $(<at_hand.log)"
# Where torch lies elsewhere on Python's path.
rm "$site/torch"
echo "${torch%/*}" >"$site/elsewhere.pth"
said 0 'DynUNet' cytra train --describe DynUNet

# The packagers' own judges.
tools=$root/build/package_tools
if ! cmp -s -- "$root/tests/package/requirements.txt" "$tools/installed.txt"; then
  python3 -m venv --clear "$tools"
  if ! PIP_RETRIES=${PIP_RETRIES:-1} "$tools/bin/python" -m pip --disable-pip-version-check install --quiet --no-input --only-binary :all: \
      -r "$root/tests/package/requirements.txt" 2>pip.log; then
    echo "wheel_test: auditwheel, twine and CycloneDX's schema are not asked: $(tail -n 1 pip.log)" >&2
    exit 0
  fi
  cp -- "$root/tests/package/requirements.txt" "$tools/installed.txt"
fi
"$tools/bin/twine" check --strict "$wheel"
excluded=()
for library in torch torch_cpu torch_cuda c10 c10_cuda gomp cudart; do excluded+=(--exclude "lib$library.so*"); done
PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair -z 1 --plat "$(grep -o 'manylinux_[0-9_]*x86_64' <<<"$wheel")" "${excluded[@]}" --wheel-dir repaired "$wheel"
"$tools/bin/python" -B "$root/tests/package/check_wheel.py" "$wheel" repaired/*.whl
