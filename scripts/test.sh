#!/usr/bin/env bash
# test.sh [arguments of ctest...]: sets up, builds and runs the tests; the last lines are ctest's summary, the exit code
# is ctest's. CYTRA_PRESET=dev tests another preset than release. Without a GPU the tests labelled cuda are left out.
set -euo pipefail
scripts=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
preset=${CYTRA_PRESET:-release}
export CYTRA_FORMATS=${CYTRA_FORMATS:-ON}  # the tests of the formats with libraries of their own
export CYTRA_CUDA=${CYTRA_CUDA:-TOOLKIT}  # what runs on GPUs compiles, and is tried on one that is not there
"$scripts/build.sh" "$preset" --target all
"$scripts/../tests/golden/read_back.sh" --install ||  # what the CI requires (CYTRA_REQUIRE_READERS), others may lack
  echo "test: without Python's libraries that read our files back: read_back.* is skipped" >&2
without=()
if [[ $CYTRA_CUDA == OFF ]] || ! nvidia-smi -L >/dev/null 2>&1; then
  echo 'test: no GPU here: the tests labelled cuda are left out' >&2
  without=(-LE cuda)
else
  export CYTRA_REQUIRE_GPU=${CYTRA_REQUIRE_GPU:-1}  # one that is not found is a failure, not a skip
fi
exec ctest --test-dir "$scripts/../build/$preset" --output-on-failure --no-tests=error -j2 "${without[@]}" "$@"
