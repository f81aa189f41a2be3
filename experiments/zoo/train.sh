#!/usr/bin/env bash
# experiments/zoo/train.sh NAME SOURCE OUTPUT [overrides...]: makes the tables of experiments/zoo/NAME, trains, and packs
# OUTPUT/NAME.ckpt. SOURCE: what NAME/prepare.py takes. Needs python3 with numpy, Pillow and safetensors.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage='usage: experiments/zoo/train.sh NAME SOURCE OUTPUT [overrides...]'
name=${1:?$usage} source=${2:?$usage} output=${3:?$usage}
shift 3
[[ -f $output/data/train.csv ]] || python3 "$here/${name%%_boxes}/prepare.py" "$source" "$output/data"
"${CYTRA_BIN:-$here/../../build/release/bin}/train" experiment="models/$name" data.path="$output/data" \
  paths.output_dir="$output/train" "$@" | tee "$output/train.txt"
python3 "$here/pack.py" "$(sed -n 's/^best_checkpoint: //p' "$output/train.txt")" "$output/$name.ckpt"
