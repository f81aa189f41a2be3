#!/usr/bin/env bash
# experiments/convolutions/run.sh OUTPUT [SEEDS=20]: three studies of experiments/ by direct and by Winograd's convolutions,
# SEEDS trainings each; prints each one's loss and Dice of what is left out, and writes them to OUTPUT/results.csv.
# The images are found as by experiments/run.sh, whose tables it uses; those of scribbles by experiments/prepare.py.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
output=${1:?usage: run.sh OUTPUT [SEEDS]} seeds=${2:-20}
bin=${CYTRA_BIN:-$root/build/release/bin}
data=$(cd "${CYTRA_REALDATA:-$root/../shared/realdata}" && pwd)
mkdir -p "$output"
results=$output/results.csv
[[ -f $results ]] || echo 'study,seed,convolution,loss,score' >"$results"
if [[ ! -d $output/scribbles ]]; then "${PYTHON:-python3}" "$root/experiments/prepare.py" scribbles "$data" "$output/scribbles"; fi
for study in stardist_2d stardist_3d; do
  mkdir -p "$output/$study"
  printf 'raw,seg\n%s,%s\n' "$data/stardist/sd_img${study#*_}.tif" "$data/stardist/sd_mask${study#*_}.tif" |
    tee "$output/$study/train.csv" >"$output/$study/valid.csv"
done
for ((seed = 0; seed < seeds; ++seed)); do
  for study in stardist_2d stardist_3d scribbles; do
    table=$output/$study
    [[ $study != scribbles ]] || table+=/fold_$((seed % 4))
    for convolution in direct winograd; do
      ! grep -q "^$study,$seed,$convolution," "$results" || continue
      "$bin/train" --config-dir "$root/experiments/$study" experiment="$study" data.path="$table" data.allow_shared=true \
        model.filters='[16,32,64]' seed=$seed performance.convolution=$convolution \
        paths.output_dir="$output/runs/$study-$seed-$convolution" -q --json >"$output/last.json"
      python3 - "$output/last.json" "$study,$seed,$convolution" <<'PYTHON' | tee -a "$results"
import json, sys
report = json.load(open(sys.argv[1]))
print(sys.argv[2], report["val/loss"], report["val/dice"], sep=",")
PYTHON
    done
  done
done
