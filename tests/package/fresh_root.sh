#!/usr/bin/env bash
# fresh_root.sh SUITE PACKAGE: a bare Debian (bookworm, trixie; debootstrap, as root) in which a user installs PACKAGE, a wheel or a .deb, trains
# and predicts; prints the seconds of each step. Of a container's recipe it is what RUN does. What it downloads takes 3 GB and minutes, so ctest
# does not run it. CYTRA_PIP="--no-deps torch==2.11.0 ..." installs these first, CYTRA_ROOT keeps the root.
set -euo pipefail
suite=$1 package=$2
root=${CYTRA_ROOT:-$(mktemp -d)}
tidy() {
  umount "$root/proc" 2>/dev/null || true
  if [[ -z ${CYTRA_ROOT:-} ]]; then rm -rf --one-file-system -- "$root" "$root.log"; fi
}
trap tidy EXIT
step() { # step NAME COMMAND...
  local name=$1 start=$EPOCHREALTIME
  shift
  "$@" >"$root.log" 2>&1 </dev/null || { tail -n 30 "$root.log" >&2; echo "fresh_root: $name failed" >&2; exit 1; }
  awk -v name="$name" -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%-10s %6.1f s\n", name, b - a }'
}
inside() { chroot "$root" /usr/bin/env HOME=/root LC_ALL=C.UTF-8 PATH=/opt/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

python=()
if [[ $package == *.whl ]]; then python=('--include=ca-certificates,python3-venv'); fi
if [[ ! -e $root/etc/os-release ]]; then step debootstrap debootstrap --variant=minbase "${python[@]}" "$suite" "$root"; fi
mount -t proc proc "$root/proc"
cp -- "$package" "$root/root/"
cp -L -- /etc/resolv.conf "$root/etc/" 2>/dev/null || true
if [[ -n ${PIP_CERT:-} ]]; then cp -- "$PIP_CERT" "$root/etc/ssl/certs/ca-certificates.crt"; fi
if [[ $package == *.whl ]]; then
  step venv inside python3 -m venv /opt/venv
  # shellcheck disable=SC2086  # words
  if [[ -n ${CYTRA_PIP:-} ]]; then step torch inside pip install --no-cache-dir $CYTRA_PIP; fi
  step install inside pip install --no-cache-dir ${CYTRA_PIP:+--no-deps} "/root/${package##*/}"
else
  inside apt-get -q update >/dev/null
  step install inside apt-get -q install -y --no-install-recommends "/root/${package##*/}"
fi
step help inside cytra train --help
step samples inside cytra generate_samples --output /root/samples --train 8 --valid 2 --test 2 --size 128
step train inside cytra train experiment=im2im/segmentation data.path=/root/samples trainer.max_epochs=2 'model.filters=[16,32]' \
  'patch_shape=[64,64]' paths.output_dir=/root/trained
step predict inside cytra predict checkpoint.ckpt_path=/root/trained/checkpoints/last.ckpt data.path=/root/samples/test.csv \
  data.with_target=true paths.output_dir=/root/masks
grep -E '^(dice|prediction): ' "$root.log"
ls -- "$root"/root/masks/*_raw*.tif
du -shx -- "$root" "$root"/opt/* 2>/dev/null
