#!/usr/bin/env bash
# experiments/instances/run.sh STUDY OUTPUT [overrides...]: trains on one side of a real image and scores the other.
# STUDY: instances_2d, instances_3d, instances_maize. CYTRA_REALDATA names the folder with the images; without it: exit 77.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
study=${1:?usage: experiments/instances/run.sh STUDY OUTPUT [overrides...]} output=${2:?OUTPUT folder is missing}
shift 2
data=${CYTRA_REALDATA:-$here/../../../shared/realdata}
case $study in
  instances_2d) image=stardist/sd_img2d.tif labels=stardist/sd_mask2d.tif ;;
  instances_3d) image=stardist/sd_img3d.tif labels=stardist/sd_mask3d.tif ;;
  instances_maize) image=bianb/maize_clsm.tif labels=bianb/maize_clsm_labels.tif ;;
  *) echo "no study '$study': instances_2d, instances_3d, instances_maize" >&2; exit 2 ;;
esac
if [[ ! -f $data/$image ]]; then
  echo "REAL IMAGES ARE MISSING: $data/$image; set CYTRA_REALDATA" >&2
  exit 77
fi
data=$(cd "$data" && pwd)
mkdir -p "$output"
printf 'raw,seg\n%s,%s\n' "$data/$image" "$data/$labels" | tee "$output/train.csv" > "$output/valid.csv"
"${CYTRA_BIN:-$here/../../build/release/bin}/train" --config-dir "$here" experiment="$study" data.path="$output" data.allow_shared=true \
  paths.output_dir="$output/train" "$@"
