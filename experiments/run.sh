#!/usr/bin/env bash
# experiments/run.sh NAME OUTPUT [overrides...]: trains and predicts a study on real images; prints the results.
# The images are found in CYTRA_REALDATA, else in ../shared/realdata beside the checkout; without them: exit 77.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=${1:?usage: experiments/run.sh NAME OUTPUT [overrides...]} output=${2:?OUTPUT folder is missing}
shift 2
bin=${CYTRA_BIN:-$root/build/release/bin}
data=${CYTRA_REALDATA:-$root/../shared/realdata}/stardist
case $name in
  stardist_2d) image=sd_img2d.tif mask=sd_mask2d.tif ;;
  stardist_3d) image=sd_img3d.tif mask=sd_mask3d.tif ;;
  *) echo "no study '$name': stardist_2d, stardist_3d" >&2; exit 2 ;;
esac
if [[ ! -f $data/$image ]]; then
  echo "REAL IMAGES ARE MISSING: $data/$image; set CYTRA_REALDATA" >&2
  exit 77
fi
data=$(cd "$data" && pwd)
mkdir -p "$output"
printf 'raw,seg\n%s,%s\n' "$data/$image" "$data/$mask" | tee "$output/train.csv" > "$output/valid.csv"
"$bin/train" --config-dir "$root/experiments/$name" experiment="$name" data.path="$output" data.allow_shared=true paths.output_dir="$output/train" "$@" \
  | tee "$output/train.txt"
checkpoint=$(sed -n 's/^last_checkpoint: //p' "$output/train.txt")
"$bin/predict" checkpoint.ckpt_path="$checkpoint" data.path="$output/valid.csv" data.with_target=true \
  paths.output_dir="$output/predict"
