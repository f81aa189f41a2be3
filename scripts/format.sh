#!/usr/bin/env bash
# format.sh [--check]: clang-format over src, light, tools, tests and examples; with --check it changes nothing and exits 1 on differences.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
case ${1:-} in
  '') mode=(-i) ;;
  --check) mode=(--dry-run --Werror) ;;
  *) echo "usage: format.sh [--check]" >&2 && exit 2 ;;
esac
if ! command -v clang-format >/dev/null; then
  echo 'error: no clang-format: apt-get install clang-format' >&2
  exit 2
fi
find src light tools tests examples -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 -r -n 16 clang-format "${mode[@]}" || exit 1
