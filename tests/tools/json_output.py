#!/usr/bin/env python3
"""json_output.py BIN: what the programs print with --json and --json-messages is as docs/schema.json says.

Exit code 77: python's jsonschema (Debian: python3-jsonschema) is not installed.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError as error:
    print(error)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/golden/models"
BIN = pathlib.Path(sys.argv[1]).resolve()
SCHEMA = json.loads((ROOT / "docs/schema.json").read_text())
CPU = "trainer.accelerator=cpu"
SMALL = f"experiment=im2im/segmentation data.path=data {CPU} patch_shape=[32,32] model.filters=[4,4,8] data.num_workers=0"
SHORT = f"{SMALL} trainer.max_epochs=1 trainer.limit_train_batches=1"
CLASSES = f"experiment=im2im/classification data=class_folders data.path=classes class_names=[a,b] {CPU} trainer.max_epochs=1 trainer.limit_train_batches=1"
BOXES = f"experiment=detection/cells data.path=data {CPU} patch_shape=[32,32] model.filters=[8,8,8] trainer.max_epochs=1 trainer.limit_train_batches=1"
DETECTOR, SEGMENTER = MODELS / "bright_detector.ts", MODELS / "bright_segmenter.ts"
# entry of the schema, command line, exit code; {best}: the checkpoint of the first training
RUNS = [
    ("generate_samples", "generate_samples --output data --train 4 --valid 2 --test 2 --size 64", 0),
    ("generate_samples", "generate_samples --kind fundus --output fundus --train 2 --valid 0 --test 0", 0),
    ("convert_image", "convert_image one.tif one.nii.gz", 0),
    ("generate_video", "generate_samples --video in.mp4 --width 64 --height 64 --frames 4", 0),
    ("train", f"train {SHORT} test=true paths.output_dir=run", 0),
    ("train", f"train {SHORT} callbacks.model_checkpoint=null paths.output_dir=run_without", 0),
    ("check", f"train --check {SMALL}", 0),
    ("check", f"train --check {SMALL} -m seed=1,2", 0),
    ("check_data", f"train --check-data {SMALL}", 0),
    ("check_data", "train --check-data experiment=im2im/segmentation data.path=broken", 2),
    ("plan", "train --plan data.path=data plan.output=mine/experiment/planned.yaml", 0),
    ("find_lr", f"train --find-lr {SMALL} lr_find.num_training=20", 0),
    ("multirun", f"train {SHORT} -m seed=1,2", 0),
    ("multirun", f"train {SHORT} -m trainer.max_epochs=1 data.path=data,nothing", None),
    ("predict", f"predict checkpoint.ckpt_path={{best}} data.path=data/test.csv data.with_target=true predict.contours=both predict.measurements=true {CPU}", 0),
    ("predict", f"predict checkpoint.ckpt_path={{best}} data.path=broken/images predict.save=entropy {CPU}", 2),
    ("describe_image", "train --describe one.tif", 0),
    ("describe_model", "predict --describe {best}", 0),
    ("predict_dry_run", f"predict --dry-run checkpoint.ckpt_path={{best}} data.path=data/test.csv {CPU}", 0),
    ("train", f"train {BOXES} paths.output_dir=run_boxes", 0),
    ("predict_boxes", f"predict checkpoint.ckpt_path=run_boxes/checkpoints/last.ckpt data.path=data/test.csv {CPU}", 0),
    ("train", f"train {CLASSES} paths.output_dir=run_classes", 0),
    ("predict_whole_images", f"predict checkpoint.ckpt_path=run_classes/checkpoints/last.ckpt data.path=data/test.csv {CPU}", 0),
    ("detect_bottlenecks", f"optimize {SMALL} --seconds 1", 0),
    ("auto_optimize", f"optimize --auto-optimize {SMALL} --config-dir mine --seconds 1", 0),
    ("benchmark_performance", "benchmark_performance --ckpt {best} --input-shape 1 1 32 32 --batch-sizes 1 2 --compare-opts --inference --train --service "
                              f"--output first.json {CPU} warmup=0 repeats=1 seconds=0.05", 0),
    ("benchmark_performance", "benchmark_performance --ckpt {best} --input-shape 1 1 32 32 --batch-sizes 1 --inference --train --baseline first.json "
                              f"{CPU} warmup=0 repeats=8 seconds=0.05", 0),
    ("export_model", "export_model checkpoint.ckpt_path={best} format=torchscript output=model.pt", 0),
    ("batch_segment", f"batch_segment data/images --detector {DETECTOR} --segmenter {SEGMENTER} --device cpu", 0),
    ("gpu_profile_batch", f"gpu_profile_batch --test-image one.tif --detector {DETECTOR} --segmenter {SEGMENTER} --device cpu seconds=0.01 images=1", 0),
    ("process_video", f"process_video in.mp4 out.mp4 --ckpt {{best}} --skip-threshold 0.01 {CPU}", 0),
    ("preprocess_fundus", f"preprocess_fundus data.path=fundus/images paths.output_dir=retinas {CPU}", 2),
]  # fmt: skip


def validator_of(entry):
    return jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{entry}"})


def errors_in(entry, value):
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in validator_of(entry).iter_errors(value)]


def make_more(folder):
    """A table with an image that is none, two folders of classes, one image."""
    images = sorted((folder / "data/images").iterdir())
    (folder / "broken/images").mkdir(parents=True)
    shutil.copy(images[0], folder / "broken/images/a.tif")
    (folder / "broken/images/b.tif").write_bytes(b"no image")
    for name in ("train", "valid"):
        (folder / f"broken/{name}.csv").write_text("raw,seg\nimages/a.tif,images/a.tif\nimages/b.tif,images/a.tif\n")
    for name, chosen in (("a", images[:3]), ("b", images[3:6])):
        for split in ("train", "valid"):
            (folder / "classes" / split / name).mkdir(parents=True)
            for image in chosen:
                shutil.copy(image, folder / "classes" / split / name)
    shutil.copy(images[0], folder / "one.tif")


def run(entry, line, code, folder, events):
    flags = ["--json", "--json-messages"]
    program, *words = line.split()
    done = subprocess.run([BIN / program, *words, *flags], cwd=folder, capture_output=True, text=True, timeout=300)
    if code is not None and done.returncode != code:
        return [f"exit code {done.returncode}, expected {code}:\n{done.stderr[-2000:]}"]
    problems = []
    for text in done.stderr.splitlines():
        try:
            event = json.loads(text)
        except ValueError:
            print(f"  no event: {text}")
            continue
        kind = event.get("event") if isinstance(event, dict) else None
        events[kind] = events.get(kind, 0) + 1
        problems += errors_in(kind, event) if kind in ("message", "progress", "epoch") else [f"an event of another kind: {text}"]
    try:
        result = json.loads(done.stdout)
    except ValueError:
        return [*problems, f"stdout is no JSON: {done.stdout[:500]!r}\n{done.stderr[-1000:]}"]
    problems += errors_in(entry, result)
    if not errors_in(entry, {**result, "an unknown key": "x"}):
        problems.append("the schema takes anything")
    for job in result.get("jobs", ()) if entry == "multirun" else ():
        problems += errors_in("train", job["result"]) if "result" in job else []
    return problems


def main():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    named = {reference["$ref"].rsplit("/", 1)[1] for reference in SCHEMA["anyOf"]}
    unseen = named - {entry for entry, _, _ in RUNS} - {"message", "progress", "epoch", "serve", "benchmark_video"}  # serve goes on; frames of up to 8K take minutes
    failures, events, best = [f"no run of {entry}" for entry in unseen], {}, ""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for entry, line, code in RUNS:
            problems = run(entry, line.replace("{best}", best), code, folder, events)
            print(f"{'ok' if not problems else 'FAILED':7} {entry:22} {line}", flush=True)
            failures += [f"{line}: {problem}" for problem in problems]
            if entry == "generate_samples" and "fundus" not in line:
                make_more(folder)
            if "paths.output_dir=run" in line and not best:
                best = "run/checkpoints/best.ckpt"
    failures += [f"no event `{kind}` was seen" for kind in ("message", "progress", "epoch") if not events.get(kind)]
    print(f"{len(RUNS)} runs, {events}, {len(failures)} failures", *failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
