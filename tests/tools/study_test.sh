#!/usr/bin/env bash
# study_test.sh NAME LOWEST_DICE: runs a study of experiments/ on real images and checks its Dice. 77: no images, skipped.
set -euo pipefail
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
results=$("$(dirname "${BASH_SOURCE[0]}")/../../experiments/run.sh" "$1" "$output" trainer.accelerator=cpu)
dice=$(sed -n 's/^dice: //p' <<<"$results")
prediction=$(sed -n 's/^prediction: //p' <<<"$results")
[[ -s $prediction ]] || { echo "no prediction was written: $results"; exit 1; }
echo "$1: Dice $dice, at least $2 expected"
awk -v dice="$dice" -v lowest="$2" 'BEGIN { exit !(dice >= lowest) }'
