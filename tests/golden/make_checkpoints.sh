#!/usr/bin/env bash
# Writes tests/golden/checkpoints: what `train` of today makes, as small as it can be. Later builds must read them:
# make new ones beside them (a format of their own), and leave these as they are.
#   tests/golden/make_checkpoints.sh BIN    then  CYTRA_UPDATE_GOLDEN=1 test_inference --gtest_filter='OldCheckpoints*'
set -euo pipefail
bin=$(CDPATH='' cd -- "$1" && pwd)
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
out=$here/checkpoints
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$bin/generate_samples" --output flat --train 2 --valid 1 --test 1 --size 48 --seed 3 -q
"$bin/generate_samples" --output deep --train 2 --valid 1 --test 1 --size 32 --spatial-dims 3 --depth 8 --seed 3 -q
train() {
  local name=$1
  shift
  "$bin/train" trainer.accelerator=cpu trainer.max_steps=2 trainer.limit_val_batches=1 data.num_workers=0 data.batch_size=1 logger=null \
    run_name="$name" paths.output_dir="$work/$name" -q "$@"
  cp "$name/checkpoints/last.ckpt" "$out/format1_$name.ckpt"
}
sed -i 1s/stain/target/ flat/*.csv
flat=(data.path=flat 'patch_shape=[16,16]')
train 2d experiment=im2im/segmentation "${flat[@]}" 'model.filters=[2,2,2]'
train ema experiment=im2im/segmentation "${flat[@]}" 'model.filters=[2,2,2]' '+callbacks.ema={_target_: EMAWeightAveraging, decay: 0.5}'
train 3d experiment=im2im/segmentation_3d data.path=deep 'patch_shape=[8,16,16]' 'model.filters=[2,2,2]'
train heads experiment=im2im/multitask "${flat[@]}" 'model.backbone.filters=[2,2,2]'
train detector experiment=detection/cells data.path=flat 'patch_shape=[32,32]' 'model.filters=[8,8,8]' model.width=32
# Two steps, taken up for two more: what goes on from here is a training of six (tests/tools/old_checkpoints_test.cpp).
mkdir one
for table in train valid; do printf 'raw,seg\n%s,%s\n' "$out/resumed/raw.png" "$out/resumed/seg.png" >one/$table.csv; done
one=(experiment=im2im/segmentation data.path=one 'patch_shape=[16,16]' 'model.filters=[2,2,2]' data.allow_shared=true scheduler=warmup_cosine
  scheduler.warmup_steps=5 trainer.accumulate_grad_batches=2 +callbacks.ema._target_=EMAWeightAveraging +callbacks.ema.decay=0.5)
train before "${one[@]}" trainer.limit_val_batches=1.0
mv "$out/format1_before.ckpt" before.ckpt
train resumed "${one[@]}" trainer.limit_val_batches=1.0 trainer.max_steps=4 checkpoint.ckpt_path="$work/before.ckpt"
ls -l "$out"
