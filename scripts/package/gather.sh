# shellcheck shell=bash
# Sourced after setup.sh by bundle.sh and package.sh: an installed tree (bin, lib, share) that carries the libraries of the
# distribution which it needs, each found from where it lies.

need_patchelf() {
  if has patchelf; then return; fi
  say 'package: installing patchelf: it makes the libraries find each other wherever they are unpacked'
  if [[ $EUID -ne 0 ]] || ! has apt-get; then fail 2 'patchelf is missing: sudo apt-get install patchelf'; fi
  local log=$root/build/patchelf.log
  { quietly "$log" apt-get -q update &&
    quietly "$log" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends patchelf; } ||
    fail 4 "apt-get could not install patchelf; log: $log"
}

# programs_of FOLDER...: the programs and libraries that lie there.
programs_of() { find "$@" -maxdepth 1 -type f \( -perm -u+x -o -name '*.so*' \); }

# gather TREE ORIGINS [FOLDER...]: copies to TREE/lib what the files in bin, lib and FOLDERs need. ORIGINS gets a line for each
# library, "its name TAB the file it was copied from".
gather() {
  local tree=$1 origins=$2 core closure lost name path openvino
  shift 2
  # ldd lists the whole closure. Left out: the C and C++ run time (the machine's own) and all of torch's, CUDA's too.
  core='^(linux-vdso|ld-linux-x86-64|lib(c|m|mvec|pthread|dl|rt|util|resolv|gcc_s|cudart|stdc\+\+))\.so'
  closure=$(programs_of "$tree/bin" "$tree/lib" "$@" |
    xargs -d '\n' env LD_LIBRARY_PATH="$tree/lib:$torch/lib" ldd 2>/dev/null) || true
  # Without its CUDA set-up the wheel's CUDA library misses some that we never load: what torch itself misses is torch's.
  missing() { awk '/not found/ && !/libcuda\.so|libnvidia-/ { print $1 }' | sort -u; }
  lost=$(comm -23 <(missing <<<"$closure") <(LD_LIBRARY_PATH="$torch/lib" ldd "$torch"/lib/*.so 2>/dev/null | missing))
  [[ -z $lost ]] || fail 1 "libraries that are needed and not on this machine: ${lost//$'\n'/ }"
  while IFS=$'\t' read -r name path; do
    if [[ $name =~ $core || -e $tree/lib/$name ]]; then continue; fi
    case $path in
      "$tree"/* | "$torch"/* | "${torch%/*}"/nvidia/* | */torch/lib/* | */nvidia/*/lib/* | /usr/local/cuda*) continue ;;
    esac
    cp -L -- "$path" "$tree/lib/$name"
    printf '%s\t%s\n' "$name" "$(readlink -f -- "$path")" >>"$origins"
  done < <(sed -n 's/^\t\([^ ]*\) => \(\/.*\) (0x[0-9a-f]*)$/\1\t\2/p' <<<"$closure" | sort -u)

  # OpenVINO loads these by their names, from the folder of its own library; its TBB is newer than others'.
  openvino=$(sed -n 's/^\tlibopenvino\.so[^ ]* => \(\/.*\)\/libopenvino\.so.*/\1/p' <<<"$closure" | head -n 1)
  if [[ -z $openvino ]]; then return; fi
  for path in "$openvino"/libopenvino_intel_cpu_plugin.so* "$openvino"/libopenvino_{ir,onnx}_frontend.so* "$openvino"/libtbb.so.*; do
    name=${path##*/}
    cp -fL -- "$path" "$tree/lib/$name"
    sed -i "/^$name\t/d" "$origins"
    printf '%s\t%s\n' "$name" "$path" >>"$origins"
  done
}

# settle RUNPATH FOLDER: strips the programs and libraries of FOLDER, which look for theirs in RUNPATH.
settle() {
  local file
  programs_of "$2" | while IFS= read -r file; do
    [[ $(head -c 4 -- "$file" | tail -c 3 | tr -d '\0') == ELF ]] || continue
    chmod u+w -- "$file"
    strip --strip-unneeded -- "$file"
    patchelf --set-rpath "$1" "$file"
  done
}

# torch_minor: the minor of torch that the build is for, such as 2.11.
torch_minor() {
  sed -n 's/^#define TORCH_VERSION_M[AI][A-Z]* \([0-9]*\)$/\1/p' "$torch/include/torch/headeronly/version.h" | paste -sd . -
}

# inventory TREE ORIGINS VERSION: the licences of the libraries in TREE/lib, and a list of these.
inventory() {
  python3 -B "$root/scripts/package/inventory.py" "$1" "$2" --version "$3" --torch "$(torch_minor)"
}

# version_of BUILD
version_of() { sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$1/CMakeCache.txt"; }
