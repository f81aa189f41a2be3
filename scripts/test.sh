#!/usr/bin/env bash
# test.sh [arguments of ctest...]: sets up, builds and runs the tests; the last lines are ctest's summary, the exit code
# is ctest's. CYTRA_PRESET=dev tests another preset than release. Tests that need a GPU skip themselves without one.
set -euo pipefail
scripts=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
preset=${CYTRA_PRESET:-release}
"$scripts/build.sh" "$preset"
exec ctest --test-dir "$scripts/../build/$preset" --output-on-failure --no-tests=error -j2 "$@"
