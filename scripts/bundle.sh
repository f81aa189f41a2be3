#!/usr/bin/env bash
# bundle.sh [--with-tests|--gpu] [PRESET=release] [OUTPUT=build/cytra-PRESET.tar.gz]: packs the built programs, our
# libraries and the distribution's libraries they need, for another x86-64 machine that has the same minor of torch and an equal or newer
# glibc and libstdc++. There: tar -xf cytra.tar.gz && cytra/run train --help
# --gpu: what scripts/gpu_check.sh runs, without the formats and engines of heavy libraries (build/cytra-PRESET-gpu.tar.gz).
set -euo pipefail
here=$PWD
# shellcheck source=scripts/setup.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
# shellcheck source=scripts/package/gather.sh
source "$root/scripts/package/gather.sh"

with_tests='' kind='' words=()
for word in "$@"; do
  case $word in
    --with-tests) with_tests=1 ;;
    --gpu) with_tests=1 kind=-gpu ;;
    -*) fail 2 "unknown flag $word; usage: bundle.sh [--with-tests|--gpu] [PRESET] [OUTPUT.tar.gz]" ;;
    *) words+=("$word") ;;
  esac
done
preset=${words[0]:-release}
build=$root/build/$preset
output=${words[1]:-$root/build/cytra-$preset$kind.tar.gz}
[[ $output == /* ]] || output=$here/$output
[[ -d $build/bin && -d $build/lib ]] || fail 2 "nothing is built in $build: run scripts/build.sh $preset"
need_patchelf

stage=$(mktemp -d -- "$root/build/bundle.XXXXXX")
trap 'stop_beat; rm -rf -- "$stage"' EXIT
tree=$stage/cytra
cmake --install "$build" --prefix "$tree" --component runtime >/dev/null
cp -- "$root/LICENSE" "$tree/"
if [[ -n $with_tests ]]; then
  [[ -d $build/tests ]] || fail 2 "no tests are built in $build"
  mkdir -p "$tree/tests/golden"
  if [[ -n $kind ]]; then
    cp -t "$tree/tests" "$build/tests/test_cuda" "$build/tests/test_ops"
    rm -f -- "$tree"/lib/libcytra_{dicom,hdf5,ffmpeg,openvino}.so
  else
    find "$build/tests" -maxdepth 1 -type f -perm -u+x -exec cp -t "$tree/tests" {} +
  fi
  cp -t "$tree/tests/golden" "$root"/tests/golden/*.safetensors
  [[ ! -x $build/benchmarks/bench_device ]] || cp -t "$tree/tests" "$build/benchmarks/bench_device"
  cp -t "$tree" "$root/scripts/gpu_check.sh"
  cp -t "$tree/tests" "$root/benchmarks/gpu_peer.py"
fi

gather "$tree" "$stage/origins.tsv" ${with_tests:+"$tree/tests"}
# shellcheck disable=SC2016  # $ORIGIN is the loader's
settle '$ORIGIN/../lib' "$tree/bin"
# shellcheck disable=SC2016
settle '$ORIGIN' "$tree/lib"
# shellcheck disable=SC2016
if [[ -n $with_tests ]]; then settle '$ORIGIN/../lib' "$tree/tests"; fi
inventory "$tree" "$stage/origins.tsv" "$(version_of "$build")"

cat >"$tree/run" <<'RUN'
#!/usr/bin/env bash
# run PROGRAM [arguments...]: starts bin/PROGRAM (or tests/PROGRAM) with torch found: CYTRA_TORCH=/path/to/torch, or
# python3's torch.
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
if [[ $# -eq 0 ]]; then
  echo "usage: run PROGRAM [arguments...]; programs: $(ls -m -- "$here/bin")" >&2
  exit 2
fi
name=$1
shift
program=$here/bin/$name
if [[ $name == tests/* ]]; then program=$here/$name; fi
if [[ ! -x $program ]]; then
  echo "error: no program $name; there are: $(ls -m -- "$here/bin")" >&2
  exit 2
fi
torch=${CYTRA_TORCH:-$(python3 -c "import importlib.util as u; s = u.find_spec('torch'); \
print(s.submodule_search_locations[0] if s else '')" 2>/dev/null || true)}
if [[ ! -f $torch/lib/libtorch_cpu.so ]]; then
  echo "error: no torch${torch:+ in $torch}: pip install torch==VERSION, or CYTRA_TORCH=/path/to/torch" >&2
  exit 2
fi
found=$(sed -n 's/^#define TORCH_VERSION_M[AI][A-Z]* \([0-9]*\)$/\1/p' "$torch/include/torch/headeronly/version.h" \
        2>/dev/null | paste -sd . -)
if [[ -n $found && $found != MINOR ]]; then
  echo "warning: torch $found in $torch; this Cytra was built with MINOR and may not start" >&2
fi
export LD_LIBRARY_PATH="$here/lib:$torch/lib:${torch%/*}/nvidia/cu13/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$program" "$@"
RUN
minor=$(torch_minor)
sed -i "s/VERSION, or/$minor.0, or/; s/!= MINOR/!= $minor/; s/with MINOR/with $minor/" "$tree/run"
chmod +x "$tree/run"

mkdir -p -- "$(dirname -- "$output")"
tar -C "$stage" --owner=0 --group=0 --numeric-owner --sort=name -c cytra | gzip -9 >"$output.part"
mv -f -- "$output.part" "$output"
megabytes=$(($(stat -c %s -- "$output") >> 20))
say "bundle: $output: $megabytes MB, $(find "$tree/bin" -type f | wc -l) programs," \
  "$(find "$tree/lib" -type f | wc -l) libraries"
large=$(find "$tree/lib" -name 'libcytra_cuda.so' -o -name 'libcytra_dicom.so' -o -name 'libcytra_ffmpeg.so' -o \
  -name 'libcytra_openvino.so')
if ((megabytes >= 40)) && [[ -z $large ]]; then
  say "warning: 40 MB are expected at most: see what is in it with tar -tvf '$output'"
fi
printf '%s\n' "$output"
