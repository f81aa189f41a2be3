#!/usr/bin/env bash
# Installs what a build needs: distribution packages, and LibTorch in .venv. Run it, or source it: `root`, `torch`,
# say(), headline(), fail() and quietly() are then there, too. Safe to repeat and to interrupt; done work is kept.
#   CYTRA_TORCH=/path/to/torch    use that LibTorch (the folder that holds include/ and lib/) instead of the wheel
#   CYTRA_TORCH_VERSION=2.11|2.15 which minor of the wheel (default: the one in .venv, else 2.11)
#   CYTRA_CUDA=ON|OFF             with or without the CUDA libraries (default: with, when there is an NVIDIA GPU)
#   CYTRA_FORMATS=ON|OFF|dicom,hdf5,ffmpeg  formats with libraries of their own (default: DICOM and HDF5 where apt-get can
#                                 install them; FFmpeg's for videos bring 140 packages)
#   CYTRA_OPENVINO=ON|OFF         OpenVINO (180 MB in .venv), which runs models on a CPU three times as fast (default: where
#                                 pip can install it)
#   CYTRA_PYTHON=/path/to/python  the Python whose pip fetches the wheel; Cytra itself runs without Python
#   HTTPS_PROXY, PIP_INDEX_URL    proxy or mirror, as pip and apt-get know them
set -euo pipefail

# With each minor the CUDA libraries that libtorch_cpu.so itself names.
declare -A torch_pins_of=([2.11]='torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85'
                          [2.15]='torch==2.15.0 nvidia-cuda-runtime==13.2.86 nvidia-cuda-cupti==13.2.86')
openvino_version=2026.4.1
packages=(build-essential g++ cmake ninja-build git python3-venv libyaml-cpp-dev libfmt-dev libcli11-dev
          nlohmann-json3-dev libtiff-dev libpng-dev libjpeg-dev libwebp-dev libopenjp2-7-dev zlib1g-dev
          libblosc-dev libzstd-dev liblz4-dev libxxhash-dev libisal-dev pkg-config libgtest-dev libgloo-dev
          libboost-dev libutf8proc-dev)
# Left out where the distribution lacks them: the first two make a build faster, the third the programs.
optional=(ccache mold libjemalloc-dev)
declare -A formats=([dicom]=libdcmtk-dev [hdf5]=libhdf5-dev
                   [ffmpeg]='libavformat-dev libavcodec-dev libswscale-dev libavutil-dev')

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
state=$root/.cache/setup
torch=''
beat=''
bold='' plain=''
if [[ -t 2 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi

say() { printf '%s\n' "$*" >&2; }
headline() { printf '%s%s%s\n' "$bold" "$*" "$plain" >&2; }
# fail CODE MESSAGE: 2 is the user's to mend, 4 the system's failure.
fail() {
  local code=$1
  shift
  printf '%serror:%s %s\n' "$bold" "$plain" "$*" >&2
  exit "$code"
}

stop_beat() {
  if [[ -n $beat ]]; then kill "$beat" 2>/dev/null || true; fi
  beat=''
}
trap stop_beat EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# quietly LOG COMMAND...: its output goes to LOG; every 15 s a line tells that it lives. Returns its exit code.
quietly() {
  local log=$1 code=0 start=$SECONDS
  shift
  : >"$log"
  (
    trap - EXIT
    exec {never}<> <(:)  # `read` waits without a sleep process that would outlive us
    while read -r -t 15 -u "$never" || kill -0 $$ 2>/dev/null; do
      printf '  ... %d s  %s\n' $((SECONDS - start)) "$(tail -c 400 "$log" | tr '\r' '\n' | tail -n 1 | cut -c -100)" >&2
    done
  ) &
  beat=$!
  "$@" >"$log" 2>&1 </dev/null || code=$?
  stop_beat
  return "$code"
}

has() { command -v "$1" >/dev/null 2>&1; }
version_below() { [[ $1 != "$2" && $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }
free_gb() { LC_ALL=C df -Pk -- "$root" | awk 'NR == 2 { print int($4 / 1048576) }'; }

# Sets `torch_version` and `torch_pins`: the minor that is asked for, else the one in .venv, else 2.11.
choose_torch() {
  local minor=${CYTRA_TORCH_VERSION:-} known stamp
  if [[ -z $minor ]]; then
    stamp=$(cat -- "$venv/.setup" 2>/dev/null || true)
    minor=2.11
    for known in "${!torch_pins_of[@]}"; do
      if [[ ${stamp#interrupted: } == "torch==$known."* ]]; then minor=$known; fi
    done
  fi
  minor=${minor%.0}
  [[ -n ${torch_pins_of[$minor]:-} ]] || fail 2 "CYTRA_TORCH_VERSION=$minor: choices are" \
    "$(printf '%s\n' "${!torch_pins_of[@]}" | sort -V | paste -sd , -)"
  torch_version=$minor.0
  read -r -a torch_pins <<<"${torch_pins_of[$minor]}"
}

check_machine() {
  local system
  system="$(uname -s) $(uname -m)"
  [[ $system == 'Linux x86_64' ]] || fail 2 "this machine is $system; Cytra supports Linux x86-64 (Debian 12, Ubuntu" \
    "22.04 or newer, and others by hand). On Windows use WSL 2; on a Mac an x86-64 Linux machine or container"
}

# check_tools [late]: too old is an error at once; missing only when nothing is going to install it.
check_tools() {
  local compiler=${CXX:-g++} found
  if has "$compiler"; then
    if [[ ${compiler##*/} == g++* ]]; then
      found=$("$compiler" -dumpfullversion 2>/dev/null || echo 0)
      if version_below "$found" 11; then
        fail 2 "$compiler is version $found; 11 or newer is needed (Debian 12, Ubuntu 22.04; or CXX=/path/to/g++-12)"
      fi
    fi
  elif [[ -n ${1:-} || -n ${CXX:-} ]]; then
    fail 2 "no C++ compiler ($compiler): install g++ 11 or newer, or set CXX"
  fi
  if has cmake; then
    found=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
    if version_below "$found" 3.22; then
      fail 2 "cmake is version $found; 3.22 or newer is needed (\`pip install cmake\` has one, too)"
    fi
  elif [[ -n ${1:-} ]]; then
    fail 2 'no cmake: install cmake 3.22 or newer'
  fi
  if ! has ninja && [[ -n ${1:-} ]]; then fail 2 'no ninja: install ninja (ninja-build)'; fi
}

# Which libraries of formats are wanted, and which may be left out.
choose_formats() {
  local name
  case ${CYTRA_FORMATS:-AUTO} in
    AUTO) optional+=("${formats[dicom]}" "${formats[hdf5]}") ;;
    OFF) ;;
    ON) read -r -a packages <<<"${packages[*]} ${formats[*]}" ;;
    *)
      for name in ${CYTRA_FORMATS//,/ }; do
        [[ -n ${formats[$name]:-} ]] || fail 2 "CYTRA_FORMATS=$CYTRA_FORMATS: choices are ON, OFF, or some of dicom,hdf5,ffmpeg"
        read -r -a packages <<<"${packages[*]} ${formats[$name]}"
      done
      ;;
  esac
}

# missing_packages NAME...: those of them that dpkg doesn't have.
missing_packages() {
  local name
  declare -A present=()
  while read -r name; do present[$name]=1; done < <(
    dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | sed -n 's/ installed$//p' || true)
  for name in "$@"; do [[ -n ${present[$name]:-} ]] || printf '%s\n' "$name"; done
}

is_torch() { [[ -f $1/include/torch/csrc/api/include/torch/torch.h && -f $1/lib/libtorch_cpu.so ]]; }

# An existing LibTorch the user named: sets `torch`.
find_named_torch() {
  local folder
  if [[ -n ${CYTRA_TORCH:-} ]]; then
    is_torch "$CYTRA_TORCH" || fail 2 "CYTRA_TORCH=$CYTRA_TORCH is no LibTorch: it must hold" \
      "include/torch/csrc/api/include/torch/torch.h and lib/libtorch_cpu.so"
    torch=$(CDPATH='' cd -- "$CYTRA_TORCH" && pwd)
    return
  fi
  local IFS=':;'
  for folder in ${CMAKE_PREFIX_PATH:-}; do
    if [[ -n $folder ]] && is_torch "$folder"; then torch=$folder && return; fi
  done
}

want_cuda() {
  case ${CYTRA_CUDA:-AUTO} in
    ON) return 0 ;;
    OFF) return 1 ;;
    AUTO | TOOLKIT) [[ -e /dev/nvidia0 ]] || { has nvidia-smi && timeout 5 nvidia-smi -L >/dev/null 2>&1; } ;;
    *) fail 2 "CYTRA_CUDA=$CYTRA_CUDA: choices are AUTO, TOOLKIT, ON, OFF" ;;
  esac
}

# The wheel's CUDA 13 with an older driver leaves the GPU idle: said while it can still be chosen.
note_old_driver() {
  local driver
  driver=$(timeout 5 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || true
  if [[ $driver =~ ^[0-9]+\. ]] && version_below "$driver" 580; then
    say "setup: the NVIDIA driver $driver is older than 580, which LibTorch $torch_version for CUDA 13 needs: update it, or" \
        'give a LibTorch for CUDA 12 by CYTRA_TORCH=/path/to/torch; until then the CPU is used'
  fi
}

# Sets `python`: one that the wheel exists for and that can make a virtual environment. Returns 1 without one.
find_python() {
  local candidate seen=''
  for candidate in ${CYTRA_PYTHON:+"$CYTRA_PYTHON"} python3 /usr/bin/python3 python3.13 python3.12 python3.11 \
                   python3.10 python3.14; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' \
       >/dev/null 2>&1; then
      python=$candidate
      return 0
    fi
    if has "$candidate"; then
      seen+="${seen:+, }$candidate $("$candidate" -c 'import platform; print(platform.python_version())' 2>/dev/null ||
                                     echo '(does not run)')"
    fi
  done
  python_seen=${seen:-none}
  return 1
}

# One set-up of a checkout at a time; the lock goes when this process does.
take_lock() {
  if ! { mkdir -p -- "$state" && : >"$state/lock"; } 2>/dev/null; then
    fail 2 "can't write to $root: check its owner and permissions, and that the disk is not mounted read-only"
  fi
  has flock || return 0
  exec 9>"$state/lock"
  if ! flock -n 9; then
    say 'setup: waiting for another set-up of this checkout to end'
    flock 9
  fi
}

install_packages() {
  local start=$SECONDS admin=() names=("${missing[@]}") name
  if [[ $EUID -ne 0 ]]; then
    if has sudo && { sudo -n true 2>/dev/null || { [[ -t 0 ]] && sudo -v; }; }; then
      admin=(sudo)
    elif [[ ${#missing[@]} -gt 0 ]]; then
      fail 2 "packages are missing and only an administrator can install them. Run this, then try again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]} ${missing_optional[*]}"
    else
      return 0
    fi
  fi
  say "setup: installing packages with apt-get (compiler, image and YAML libraries): ${missing[*]} ${missing_optional[*]}"
  local options=(-q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=1 -o Acquire::http::Timeout=10
                 -o Acquire::https::Timeout=10)
  quietly "$state/apt.log" "${admin[@]}" apt-get "${options[@]}" update || apt_failed
  for name in "${missing_optional[@]}"; do
    if [[ -n $(apt-cache show "$name" 2>/dev/null) ]]; then names+=("$name"); fi
  done
  if [[ ${#names[@]} -gt 0 ]]; then
    quietly "$state/apt.log" "${admin[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y \
      --no-install-recommends "${names[@]}" || apt_failed
  fi
  hash -r
  say "setup: packages done in $((SECONDS - start)) s"
}

apt_failed() {
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "setup: apt-get could not install ${missing_optional[*]}: going on without (log: $state/apt.log)"
    return
  fi
  fail 4 "apt-get could not install the packages: $(grep -E '^(E|Err|W):' "$state/apt.log" | head -n 2 | tr '\n' ' ')
  Without direct network access set http_proxy and https_proxy, or a mirror in /etc/apt/sources.list; or have these
  installed by hand: ${missing[*]}
  Log: $state/apt.log"
}

install_torch() {
  local start=$SECONDS what=("${torch_pins[@]}")
  if [[ $flavour == cuda ]]; then
    say "setup: installing LibTorch $torch_version with the CUDA 13 libraries (4.6 GB) in .venv:" \
        'the tensor library; CYTRA_CUDA=OFF leaves CUDA out'
  else
    say "setup: installing LibTorch $torch_version for CPU (1 GB) in .venv: the tensor library Cytra is built on"
    what=(--no-deps "${what[@]}")
  fi
  if [[ $stamp == interrupted* ]] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    quietly "$state/pip.log" "$python" -m venv --clear "$venv" ||
      fail 4 "$python could not make the virtual environment $venv: $(tail -n 1 "$state/pip.log")"
  fi
  { mkdir -p -- "$venv/tmp" && echo "interrupted: $wanted" >"$venv/.setup"; } 2>/dev/null ||
    fail 2 "can't write to $venv: check its owner and permissions, or remove it and try again"
  # Unpacked beside its place: /tmp is often a small memory disk.
  quietly "$state/pip.log" env TMPDIR="$venv/tmp" PIP_DEFAULT_TIMEOUT="${PIP_DEFAULT_TIMEOUT:-10}" \
    PIP_RETRIES="${PIP_RETRIES:-1}" "$venv/bin/python" -m pip --disable-pip-version-check install --no-input \
    --progress-bar off --only-binary :all: "${what[@]}" || pip_failed
  is_torch "$(torch_folder)" || fail 4 "the torch wheel holds no LibTorch; remove $venv and try again"
  rm -rf -- "$venv/tmp"
  echo "$wanted" >"$venv/.setup"
  say "setup: LibTorch done in $((SECONDS - start)) s"
}

# Its headers and libraries; --no-deps leaves out what its Python part needs.
install_openvino() {
  local start=$SECONDS
  say "setup: installing OpenVINO $openvino_version (180 MB) in .venv: it runs models on a CPU; CYTRA_OPENVINO=OFF leaves it out"
  if { "$venv/bin/python" -m pip --version >/dev/null 2>&1 ||
       { find_python && quietly "$state/openvino.log" "$python" -m venv "$venv"; }; } &&
     mkdir -p -- "$venv/tmp" &&
     quietly "$state/openvino.log" env TMPDIR="$venv/tmp" PIP_DEFAULT_TIMEOUT="${PIP_DEFAULT_TIMEOUT:-10}" \
       PIP_RETRIES="${PIP_RETRIES:-1}" "$venv/bin/python" -m pip --disable-pip-version-check install --no-input \
       --no-deps --progress-bar off --only-binary :all: "openvino==$openvino_version" && has_openvino; then
    rm -rf -- "$venv/tmp"
    say "setup: OpenVINO done in $((SECONDS - start)) s"
    return
  fi
  rm -rf -- "$venv/tmp"
  if [[ ${CYTRA_OPENVINO:-AUTO} == ON ]]; then
    fail 4 "pip could not install openvino $openvino_version: $(grep -E '^ERROR|No space left' "$state/openvino.log" | head -n 1)
  Without it: CYTRA_OPENVINO=OFF. Log: $state/openvino.log"
  fi
  echo "$openvino_version" >"$state/no_openvino"  # not tried again at every build
  say "setup: pip could not install OpenVINO: going on without; CYTRA_OPENVINO=ON tries again (log: $state/openvino.log)"
}

has_openvino() { compgen -G "$venv/lib/python3*/site-packages/openvino-$openvino_version.dist-info" >/dev/null; }

want_openvino() {
  case ${CYTRA_OPENVINO:-AUTO} in
    ON) return 0 ;;
    OFF) return 1 ;;
    # Beside a LibTorch that the user named cmake finds it, too, where it is
    AUTO) [[ -z ${CYTRA_TORCH:-} && $(cat -- "$state/no_openvino" 2>/dev/null) != "$openvino_version" ]] ;;
    *) fail 2 "CYTRA_OPENVINO=$CYTRA_OPENVINO: choices are AUTO, ON, OFF" ;;
  esac
}

pip_failed() {
  local reason without_cuda=''
  if [[ $flavour == cuda ]]; then without_cuda='; or go on without the GPU: CYTRA_CUDA=OFF'; fi
  reason=$(grep -E '^ERROR|No space left' "$state/pip.log" | head -n 1 || true)
  if grep -q 'connection broken by' "$state/pip.log"; then
    reason="the package index can't be reached ($(sed -n "s/.*connection broken by '\([A-Za-z]*\).*/\1/p" "$state/pip.log" | tail -n 1))"
  fi
  if [[ $reason == *'No space left'* ]]; then fail 4 "the disk became full: free some space below $root, then try again"; fi
  fail 4 "pip could not install torch $torch_version: ${reason#ERROR: }
  Without direct network access set HTTPS_PROXY, or PIP_INDEX_URL to a mirror;
  or give an existing LibTorch $torch_version: CYTRA_TORCH=/path/to/torch$without_cuda
  Log: $state/pip.log"
}

torch_folder() {
  local folder
  for folder in "$venv"/lib/python3*/site-packages/torch; do printf '%s\n' "$folder"; done | head -n 1
}

# What is there and what is due.
look() {
  debian='' packages_due='' torch_due='' openvino_due='' stamp='' torch='' note='' missing=() missing_optional=() need_gb=1
  if has dpkg-query && has apt-get; then
    debian=1
    mapfile -t missing < <(missing_packages "${packages[@]}")
    mapfile -t missing_optional < <(missing_packages "${optional[@]}")
    if [[ ${#missing[@]} -gt 0 || ( ${#missing_optional[@]} -gt 0 && ! -e $state/packages ) ]]; then packages_due=1; fi
  fi
  if want_openvino && ! has_openvino; then openvino_due=1; fi
  find_named_torch
  if [[ -n $torch ]]; then return; fi
  stamp=$(cat -- "$venv/.setup" 2>/dev/null || true)
  torch=$(torch_folder)
  flavour=cpu
  if want_cuda; then flavour=cuda; fi
  wanted="${torch_pins[*]} $flavour"
  if [[ $stamp == "${torch_pins[*]} cuda" ]]; then wanted=$stamp; fi  # holds what the CPU needs, too
  if [[ $stamp != "$wanted" ]] || ! is_torch "$torch"; then
    torch_due=1
    if [[ $flavour == cuda ]]; then need_gb=16; else need_gb=8; fi
  fi
  note=" for ${wanted##* }"
}

setup() {
  local debian packages_due torch_due openvino_due stamp note missing missing_optional need_gb flavour wanted python='' python_seen=''
  choose_torch
  check_machine
  choose_formats
  look
  if [[ -n $debian ]]; then
    check_tools
  else
    if [[ ! -e $state/packages ]]; then
      say 'setup: no apt-get here; needed are g++ 11, cmake 3.22, ninja, git, and the development packages of' \
          'yaml-cpp, fmt, CLI11, nlohmann-json, libtiff, libpng, libjpeg, libwebp, openjpeg, zlib, blosc, zstd, lz4, isa-l, utf8proc, gloo and googletest (cmake names any it misses)'
    fi
    check_tools late
  fi
  if [[ -n $torch_due && $flavour == cuda ]]; then note_old_driver; fi
  if [[ $(free_gb) -lt $need_gb ]]; then
    fail 2 "$root has $(free_gb) GB free; $need_gb GB are needed: free some, or move the checkout to a larger disk"
  fi
  if [[ -n $torch_due && " ${missing[*]} " != *' python3-venv '* ]]; then find_python || no_python; fi

  if [[ -n $packages_due || -n $torch_due || -n $openvino_due || ! -e $state/packages ]]; then
    take_lock
    look  # another set-up may just have done it
    if [[ -n $packages_due ]]; then install_packages; fi
    check_tools late
    if [[ -n $debian ]]; then dpkg-query -W "${packages[@]}"; else echo 'by hand'; fi >"$state/packages"
    if [[ -n $torch_due ]]; then
      find_python || no_python
      install_torch
      torch=$(torch_folder)
    fi
    if [[ -n $openvino_due ]]; then install_openvino; fi
    if has flock; then exec 9>&-; fi
  fi
  say "setup: ready: $("${CXX:-g++}" --version | head -n 1), $(cmake --version | head -n 1), LibTorch$note in $torch"
}

no_python() {
  fail 2 "no Python that the torch $torch_version wheel exists for: 3.10 to 3.14 with venv and pip is needed" \
    "(python3-venv); found: $python_seen. Name one with CYTRA_PYTHON=..., or an existing LibTorch with CYTRA_TORCH=..."
}

setup
