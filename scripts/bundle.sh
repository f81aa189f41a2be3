#!/usr/bin/env bash
# bundle.sh [--with-tests|--gpu] [PRESET=release] [OUTPUT=build/cytra-PRESET.tar.gz]: packs the built programs, our
# libraries and the distribution's libraries they need, for another x86-64 machine that has the same minor of torch and an equal or newer
# glibc and libstdc++. There: tar -xf cytra.tar.gz && cytra/run train --help
# --gpu: what scripts/gpu_check.sh runs, without the formats and engines of heavy libraries (build/cytra-PRESET-gpu.tar.gz).
set -euo pipefail
here=$PWD
# shellcheck source=scripts/setup.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"

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
if ! has patchelf; then
  say 'bundle: installing patchelf: it makes the libraries find each other wherever they are unpacked'
  if [[ $EUID -ne 0 ]] || ! has apt-get; then fail 2 'patchelf is missing: sudo apt-get install patchelf'; fi
  log=$build/patchelf.log
  { quietly "$log" apt-get -q update &&
    quietly "$log" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends patchelf; } ||
    fail 4 "apt-get could not install patchelf; log: $log"
fi

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
    rm -f -- "$tree"/lib/libcytra_{dicom,video,hdf5,ffmpeg,openvino}.so
  else
    find "$build/tests" -maxdepth 1 -type f -perm -u+x -exec cp -t "$tree/tests" {} +
  fi
  cp -t "$tree/tests/golden" "$root"/tests/golden/*.safetensors
  [[ ! -x $build/benchmarks/bench_device ]] || cp -t "$tree/tests" "$build/benchmarks/bench_device"
  cp -t "$tree" "$root/scripts/gpu_check.sh"
  cp -t "$tree/tests" "$root/benchmarks/gpu_peer.py"
fi

# ldd lists the whole closure. Left out: the C and C++ run time (the machine's own) and all of torch's, CUDA's too.
core='^(linux-vdso|ld-linux-x86-64|lib(c|m|mvec|pthread|dl|rt|util|resolv|gcc_s|cudart|stdc\+\+))\.so'
closure=$(find "$tree/bin" "$tree/lib" ${with_tests:+"$tree/tests"} -maxdepth 1 -type f \
            \( -perm -u+x -o -name '*.so*' \) -exec env LD_LIBRARY_PATH="$tree/lib:$torch/lib" ldd {} + 2>/dev/null)
# Without its CUDA set-up the wheel's CUDA library misses some that we never load: what torch itself misses is torch's.
missing() { awk '/not found/ && !/libcuda\.so|libnvidia-/ { print $1 }' | sort -u; }
lost=$(comm -23 <(missing <<<"$closure") <(LD_LIBRARY_PATH="$torch/lib" ldd "$torch"/lib/*.so 2>/dev/null | missing))
[[ -z $lost ]] || fail 1 "libraries that are needed and not on this machine: ${lost//$'\n'/ }"
sed -n 's/^\t\([^ ]*\) => \(\/.*\) (0x[0-9a-f]*)$/\1\t\2/p' <<<"$closure" | sort -u | while IFS=$'\t' read -r name path; do
  if [[ $name =~ $core || -e $tree/lib/$name ]]; then continue; fi
  case $path in
    "$tree"/* | "$torch"/* | "${torch%/*}"/nvidia/* | */torch/lib/* | */nvidia/*/lib/* | /usr/local/cuda*) continue ;;
  esac
  cp -L -- "$path" "$tree/lib/$name"
done

# OpenVINO loads the first two by their names, from the folder of its own library; its TBB is newer than others'.
openvino=$(sed -n 's/^\tlibopenvino\.so[^ ]* => \(\/.*\)\/libopenvino\.so.*/\1/p' <<<"$closure" | head -n 1)
if [[ -n $openvino ]]; then
  cp -fL -- "$openvino"/libopenvino_intel_cpu_plugin.so* "$openvino"/libopenvino_ir_frontend.so* \
    "$openvino"/libtbb.so.* "$tree/lib/"
fi

find "$tree/bin" "$tree/lib" ${with_tests:+"$tree/tests"} -type f -print0 | while IFS= read -r -d '' file; do
  [[ $(head -c 4 -- "$file" | tail -c 3 | tr -d '\0') == ELF ]] || continue
  chmod u+w -- "$file"
  strip --strip-unneeded -- "$file"
  # shellcheck disable=SC2016  # $ORIGIN is the loader's
  if [[ $file == "$tree"/lib/* ]]; then patchelf --set-rpath '$ORIGIN' "$file"
  else patchelf --set-rpath '$ORIGIN/../lib' "$file"; fi
done

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
minor=$(sed -n 's/^#define TORCH_VERSION_M[AI][A-Z]* \([0-9]*\)$/\1/p' "$torch/include/torch/headeronly/version.h" | paste -sd . -)
sed -i "s/VERSION, or/$minor.0, or/; s/!= MINOR/!= $minor/; s/with MINOR/with $minor/" "$tree/run"
chmod +x "$tree/run"

mkdir -p -- "$(dirname -- "$output")"
tar -C "$stage" --owner=0 --group=0 --numeric-owner --sort=name -c cytra | gzip -9 >"$output.part"
mv -f -- "$output.part" "$output"
megabytes=$(($(stat -c %s -- "$output") >> 20))
say "bundle: $output: $megabytes MB, $(find "$tree/bin" -type f | wc -l) programs," \
  "$(find "$tree/lib" -type f | wc -l) libraries"
large=$(find "$tree/lib" -name 'libcytra_cuda.so' -o -name 'libcytra_dicom.so' -o -name 'libcytra_video.so' -o \
  -name 'libcytra_ffmpeg.so' -o -name 'libcytra_openvino.so')
if ((megabytes >= 40)) && [[ -z $large ]]; then
  say "warning: 40 MB are expected at most: see what is in it with tar -tvf '$output'"
fi
printf '%s\n' "$output"
