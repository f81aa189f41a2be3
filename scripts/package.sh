#!/usr/bin/env bash
# package.sh wheel|tar|deb|predict [PRESET=release]: makes of the built programs what users install, in build/dist with its checksum in
# SHA256SUMS, and prints its path. Each holds the licences of all libraries inside, and their list (CycloneDX).
#   wheel  pip brings torch of the minor it was built with. Without videos: FFmpeg's libraries are 160 MB, most of them GPL
#   tar    scripts/bundle.sh: to unpack anywhere, beside a torch of that minor
#   predict  cytra-predict alone, without torch: cmake --build build/release --target cytra-predict makes it first
#   deb    for the distribution it is made on, with torch's libraries for a CPU inside: /opt/cytra, /usr/bin/cytra, and cytra-predict as above
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
# shellcheck source=scripts/package/gather.sh
source "$root/scripts/package/gather.sh"

kind=${1:-} preset=${2:-release}
if [[ ! $kind =~ ^(wheel|tar|deb|predict)$ ]] || (($# > 2)); then fail 2 'usage: package.sh wheel|tar|deb|predict [PRESET]'; fi
build=$root/build/$preset
dist=$root/build/dist
[[ -x $build/bin/train && -d $build/lib ]] || fail 2 "nothing is built in $build: run scripts/build.sh $preset"
version=$(version_of "$build")
mkdir -p -- "$dist"
stage=$(mktemp -d -- "$root/build/package.XXXXXX")
trap 'stop_beat; rm -rf -- "$stage"' EXIT

# The oldest glibc that all files of TREE run with, as 2_36.
glibc_of() {
  programs_of "$1/bin" "$1/lib" | xargs -d '\n' objdump -T 2>/dev/null |
    grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1 | sed 's/GLIBC_//; s/\./_/'
}

make_wheel() {
  local tree=$stage/cytra_programs
  cmake --install "$build" --prefix "$tree" --component runtime >/dev/null
  rm -f -- "$tree"/lib/libcytra_ffmpeg.so
  gather "$tree" "$stage/origins.tsv"
  # Side by side with torch and nvidia in site-packages.
  # shellcheck disable=SC2016  # $ORIGIN is the loader's
  settle '$ORIGIN/../lib' "$tree/bin"
  # shellcheck disable=SC2016
  settle '$ORIGIN:$ORIGIN/../../torch/lib:$ORIGIN/../../nvidia/cu13/lib' "$tree/lib"
  inventory "$tree" "$stage/origins.tsv" "$version"
  python3 -B "$root/scripts/package/wheel.py" "$tree" --version "$version" --torch "$(torch_minor)" \
    --platform "manylinux_$(glibc_of "$tree")_x86_64" --output "$dist"
}

make_tar() { "$root/scripts/bundle.sh" "$preset" "$dist/cytra-$version-linux-x86_64.tar.gz"; }

expect_predict() {
  [[ -x $build/light/bin/cytra-predict ]] || fail 2 "cytra-predict is not built: cmake --build $build --target cytra-predict"
}

# Models at hand as cytra-predict runs them, with their cards: all but detectors.
export_models() {
  local model name
  mkdir -p "$1"
  for model in "$root"/models/*.ckpt; do
    name=$(basename "$model" .ckpt)
    if "$build/bin/export_model" checkpoint.ckpt_path="$model" format=onnx output="$1/$name.onnx" >/dev/null 2>"$stage/export.txt"; then
      cp -- "$root/models/$name.md" "$1"
    else
      grep -q 'is a detector' "$stage/export.txt" || fail 1 "$(<"$stage/export.txt")"
    fi
  done
}

# Exported models over images: to unpack anywhere. It stays small, or fails.
make_predict() {
  local tree=$stage/cytra-predict most=80000000
  local made=$dist/cytra-predict-$version-linux-x86_64.tar.gz
  expect_predict
  mkdir -p "$tree/share/cytra"
  cp -rL -- "$build/light/bin" "$build/light/lib" "$tree"
  cp -r -- "$root/configs" "$tree/share/cytra"
  export_models "$tree/share/cytra/models"
  cp -- "$root/LICENSE" "$tree"
  torch=$stage/none gather "$tree" "$stage/origins.tsv"  # OpenMP's library is the distribution's
  # shellcheck disable=SC2016  # $ORIGIN is the loader's
  settle '$ORIGIN/../lib' "$tree/bin"
  # shellcheck disable=SC2016
  settle '$ORIGIN' "$tree/lib"
  inventory "$tree" "$stage/origins.tsv" "$version"
  if compgen -G "$tree/lib/lib*torch*" >/dev/null; then fail 1 "torch came along: $(echo "$tree"/lib/lib*torch*)"; fi
  tar -C "$stage" -czf "$made" cytra-predict
  (($(stat -c %s -- "$made") <= most)) || fail 1 "$made: $(stat -c %s -- "$made") bytes, expected $most at most"
  printf '%s\n' "$made"
}

# Debian has no torch of our minor, so its libraries for a CPU come along; the others are Debian's packages.
make_deb() {
  has dpkg-shlibdeps || fail 2 'dpkg-shlibdeps is missing: sudo apt-get install dpkg-dev'
  local system=$stage/deb tree=$stage/deb/opt/cytra name path
  expect_predict
  cmake --install "$build" --prefix "$tree" --component runtime >/dev/null
  rm -f -- "$tree"/lib/libcytra_{cuda,nccl}.so
  gather "$tree" "$stage/all.tsv"
  while IFS=$'\t' read -r name path; do
    if [[ $path == */site-packages/* ]]; then printf '%s\t%s\n' "$name" "$path" >>"$stage/origins.tsv"; else rm -- "$tree/lib/$name"; fi
  done <"$stage/all.tsv"
  LD_LIBRARY_PATH=$torch/lib ldd "$torch/lib/libtorch_cpu.so" | sed -n 's/^\t\([^ ]*\) => \(\/.*\) (0x[0-9a-f]*)$/\1\t\2/p' |
    grep -E "/(torch|nvidia)/" >"$stage/torch.tsv"
  printf 'libtorch_cpu.so\t%s\n' "$torch/lib/libtorch_cpu.so" >>"$stage/torch.tsv"
  # shellcheck disable=SC2016  # $ORIGIN is the loader's
  settle '$ORIGIN/../lib' "$tree/bin"
  # shellcheck disable=SC2016
  settle '$ORIGIN' "$tree/lib"
  export_models "$tree/share/cytra/models"
  mkdir "$tree/light"  # cytra-predict with its own libraries, beside OpenVINO's and configs/ of all
  cp -rL -- "$build/light/bin" "$build/light/lib" "$tree/light"
  ln -s ../share "$tree/light/share"
  # shellcheck disable=SC2016  # $ORIGIN is the loader's
  settle '$ORIGIN/../lib:$ORIGIN/../../lib' "$tree/light/bin"
  # shellcheck disable=SC2016
  settle '$ORIGIN:$ORIGIN/../../lib' "$tree/light/lib"
  while IFS=$'\t' read -r name path; do  # as they are: their RUNPATHs name their own folder
    cp -L -- "$path" "$tree/lib/$name"
    printf '%s\t%s\n' "$name" "$(readlink -f -- "$path")" >>"$stage/origins.tsv"
  done <"$stage/torch.tsv"
  inventory "$tree" "$stage/origins.tsv" "$version"

  mkdir -p "$system/usr/bin" "$system/usr/share/doc/cytra" "$system/DEBIAN" "$stage/debian"
  ln -s /opt/cytra/bin/cytra "$system/usr/bin/cytra"
  ln -s /opt/cytra/light/bin/cytra-predict "$system/usr/bin/cytra-predict"
  cp -- "$root/LICENSE" "$system/usr/share/doc/cytra/copyright"
  printf 'Source: cytra\n\nPackage: cytra\nArchitecture: amd64\n' >"$stage/debian/control"
  # Videos are optional: FFmpeg's libraries are 140 packages.
  local needs=() file
  while IFS= read -r file; do
    case $file in
      */libcytra_ffmpeg.so) needs+=("-dRecommends" "-e$file") ;;
      *) needs+=("-dDepends" "-e$file") ;;
    esac
  done < <(programs_of "$tree/bin" "$tree/lib" "$tree/light/bin" "$tree/light/lib")
  (cd -- "$stage" && dpkg-shlibdeps -O --ignore-missing-info "-l$tree/lib" "-l$tree/light/lib" "${needs[@]}") >"$stage/needs.txt" 2>"$stage/needs.log" ||
    fail 1 "dpkg-shlibdeps: $(<"$stage/needs.log")"
  cat >"$system/DEBIAN/control" <<CONTROL
Package: cytra
Version: $version
Architecture: amd64
Maintainer: The Cytra authors <cytra@localhost>
Section: science
Priority: optional
Installed-Size: $(du -sk --apparent-size "$system" | cut -f 1)
$(sed -n 's/^shlibs:\([A-Za-z]*\)=/\1: /p' "$stage/needs.txt")
Description: Deep learning on microscopy and medical images, natively
 Trains and runs models that segment, detect and classify in 2D and 3D images.
 cytra train, cytra predict and others run on the CPU; cytra-predict runs exported models without torch.
CONTROL
  (cd -- "$system" && find opt -type f -print0 | xargs -0 md5sum) >"$system/DEBIAN/md5sums"
  dpkg-deb --root-owner-group -Zzstd -z9 --build "$system" "$dist/cytra_${version}_amd64.deb" >/dev/null
  printf '%s\n' "$dist/cytra_${version}_amd64.deb"
}

need_patchelf
made=$("make_$kind")
(cd -- "$dist" && sha256sum -- cytra* >SHA256SUMS)
say "package: $made: $(($(stat -c %s -- "$made") / 1000000)) MB"
printf '%s\n' "$made"
