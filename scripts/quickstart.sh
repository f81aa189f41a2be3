#!/usr/bin/env bash
# From a fresh clone to a trained model: sets up, builds, makes sample images, trains, predicts and measures.
# Everything it writes is below .venv, build, data/samples and logs. 7 to 20 minutes the first time on two cores (nearly all of it is the build), one to five after.
set -euo pipefail
here=$PWD
scripts=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

step() { headline "[$1/7 $(printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)))] $2"; }
# run NAME COMMAND...: results of a program of ours in `results`; its messages pass through.
run() {
  local name=$1 code=0
  shift
  results=$("$@") || code=$?
  [[ $code -eq 0 ]] || fail "$code" "$name failed with exit code $code: $*"
}
# result KEY: the first value of `KEY: value` in `results`.
result() {
  local value
  value=$(sed -n "s/^$1: //p" <<<"$results" | sed -n 1p)
  [[ -n $value ]] || fail 1 "the program printed no '$1:' line"
  printf '%s\n' "$value"
}
# seen PATH: as the user reads it from where they stand.
seen() {
  local path=$1
  [[ $path == /* ]] || path=$root/$path
  printf '%s\n' "${path#"$here/"}"
}

printf '[1/7 0:00] Set-up\n' >&2
# shellcheck source=scripts/setup.sh
source "$scripts/setup.sh"
step 2 'Build what the next steps run'
"$scripts/build.sh" release --target first_programs
cd -- "$root"
bin=build/release/bin

step 3 'Sample images: fluorescent cells and their masks'
if [[ -f data/samples/train.csv ]]; then
  say 'data/samples is there already'
else
  run generate_samples "$bin/generate_samples" --output data/samples --train 24 --valid 6 --test 6 --size 256 --seed 0
fi

step 4 'Train a U-Net to segment them'
run train "$bin/train" experiment=im2im/quickstart
dice=$(result best_score)
best=$(result best_checkpoint)
last=$(result last_checkpoint)
folder=$(result output_dir)

step 5 'Predict the test images'
run predict "$bin/predict" "checkpoint.ckpt_path=$best" data.path=data/samples/test.csv data.with_target=true
test_dice=$(result dice)
prediction=$(result prediction)
overlay=$(result overlay)
say "a mask: $(seen "$prediction"), and over its image: $(seen "$overlay")"

run predict "$bin/predict" checkpoint.ckpt_path=nuclei data.path=data/samples/test.csv
nuclei=$(result prediction)
say "labels of 'nuclei', a model that comes along: $(seen "$nuclei"), and $(seen "$(result overlay)")"

step 6 'Measure the model'
run benchmark_performance "$bin/benchmark_performance" --ckpt "$best" --input-shape 1 1 256 256 --batch-sizes 1 2 \
  --compare-opts --output "$folder/report.json"
printf '%s\n' "$results" >&2

step 7 'Build the other programs'
"$scripts/build.sh" release

{ [[ $dice =~ ^[01](\.[0-9]+)?$ ]] && LC_ALL=C awk -v dice="$dice" 'BEGIN { exit !(dice >= 0.90) }'; } ||
  fail 1 "validation Dice is $dice; 0.90 or more was expected: please report this, with $(seen "$folder")"
cat <<END

Done in $((SECONDS / 60)) min $((SECONDS % 60)) s
  validation Dice  $(LC_ALL=C printf '%.4f' "$dice")
  test Dice        $(LC_ALL=C printf '%.4f' "$test_dice")
  prediction       $(seen "$prediction")
  overlay          $(seen "$overlay")
  without training $(seen "$nuclei")
  performance      $(seen "$folder/report.json")

To go on (in '$root'):
  train another way        $bin/train experiment=im2im/quickstart model.filters=[32,64,128] optimizer.lr=1e-3
  predict your own images  $bin/predict "checkpoint.ckpt_path=$best" data.path=/your/images
  nuclei, without training $bin/predict checkpoint.ckpt_path=nuclei data.path=/your/images
  resume, to 40 epochs     $bin/train experiment=im2im/quickstart "checkpoint.ckpt_path=$last" trainer.max_epochs=40
END
