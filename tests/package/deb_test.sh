#!/usr/bin/env bash
# deb_test.sh BUILD TORCH: makes the .deb, unpacks it into a root of its own, and lets a user train and predict with what it puts on the path.
set -euo pipefail
build=$1 torch=$2
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
fail() { echo "deb_test: $*" >&2; exit 1; }
skip() { echo "deb_test: skipped: $*" >&2; exit 77; }
[[ -x $build/light/bin/cytra-predict ]] || skip 'cytra-predict is not built'
for tool in dpkg-deb dpkg-shlibdeps patchelf; do command -v "$tool" >/dev/null || skip "$tool is missing"; done
[[ $build == "$root"/build/* ]] || skip "$build is no build of scripts/build.sh"
work=$build/tests/deb
rm -rf -- "$work"
mkdir -p -- "$work/path"
deb=$(CYTRA_TORCH=$torch "$root/scripts/package.sh" deb "${build##*/}" 2>"$work/package.log") || fail "package.sh: $(<"$work/package.log")"
dpkg-deb -x "$deb" "$work/root"
cd -- "$work"

[[ $(ls root/usr/bin) == $'cytra\ncytra-predict' ]] || fail "on the path are: $(ls root/usr/bin)"
for link in root/usr/bin/*; do ln -s "$work/root$(readlink "$link")" "path/${link##*/}"; done
depends=$(dpkg-deb -f "$deb" Depends)
for package in libtiff libwebp libopenjp2 libhdf5 libdcmtk; do
  [[ $depends == *$package* ]] || fail "$package is not among its dependencies: $depends"
done
find root/opt/cytra -type f \( -perm -u+x -o -name '*.so*' \) -exec env -i ldd {} + >ldd.txt 2>/dev/null || true
if grep -F 'not found' ldd.txt | grep -v 'libav\|libsw\|libcuda'; then fail 'these libraries are found nowhere'; fi
if grep -F -e "$build/lib" -e "$torch" ldd.txt; then fail 'these libraries are not those of the package'; fi

user() { env -i HOME="$work" PATH="$work/path:/usr/bin:/bin" LANG=C.UTF-8 "$@" >said.txt 2>&1 || fail "$*: $(<said.txt)"; }
user cytra train --version
user cytra --licenses
user cytra generate_samples --output samples --train 2 --valid 1 --test 1 --size 64
user cytra train experiment=im2im/segmentation data.path=samples paths.output_dir=trained trainer.max_steps=2 'model.filters=[4,8,8]' \
  'patch_shape=[32,32]' trainer.accelerator=cpu
user cytra predict checkpoint.ckpt_path=trained/checkpoints/last.ckpt data.path=samples/test.csv data.with_target=true paths.output_dir=masks
grep -q '^dice: ' said.txt || fail "no score: $(<said.txt)"
[[ -n $(ls masks/*_raw*.tif) ]] || fail 'no mask'
user cytra export_model checkpoint.ckpt_path=trained/checkpoints/last.ckpt format=onnx output=model.onnx
user cytra-predict checkpoint.ckpt_path=model.onnx data.path=samples/test.csv paths.output_dir=light
[[ -n $(ls light/*_raw*.tif) ]] || fail 'cytra-predict wrote no mask'
user cytra-predict checkpoint.ckpt_path=nuclei data.path=samples/test.csv paths.output_dir=at_hand
user cytra predict checkpoint.ckpt_path=nuclei data.path=samples/test.csv paths.output_dir=at_hand_torch
[[ -n $(ls at_hand/*_raw*.tif) && -n $(ls at_hand_torch/*_raw*.tif) ]] || fail 'a model at hand wrote no labels'
