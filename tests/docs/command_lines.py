#!/usr/bin/env python3
"""command_lines.py BIN [DOCUMENT ...]: runs every command line of README.md, docs/*.md (```sh blocks, and `train ...` in the text) and the
programs' --help as a reader would type it, in a scratch folder with small generated images. Each must end with 0.
With documents (docs/start.md), only their lines.

What stands for the reader's own is filled in (PLACES), and trainings are cut short (small()). Lines that can't run in a test are in
LEFT_OUT; an entry there that no line needs is a failure, too.
"""

import collections
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/golden/models"
PROGRAMS = sorted(path.stem for path in (ROOT / "tools").glob("*.cpp"))
LEFT_OUT = {
    r"scripts/(quickstart|test|build)\.sh": "installs, builds and takes minutes; CI runs them",
    r"cmake |ctest |python3 tests/": "of the checkout, not of the programs; tests/package has the installation",
    r"torchrun |srun |#SBATCH|#!/bin/bash": "needs a cluster; tests/tools/ddp_test.cpp has the launcher's environment",
    r"scripts/package\.sh|pipx |/pip |apt install |cytra-predict |cytra/(bin|run)|tar -xf|^python3 -m venv": "installs; tests/package has the wheel",
    r"nvidia-smi|gpu --from|test_cuda|trainer=gpu |accelerator=gpu": "needs a GPU; tests/cuda has its share",
    r"g\+\+ .*-fsanitize=thread": "compiles tests again, with a compiler that the programs do without",
    r"process_video --benchmark": "frames of up to 8K take minutes here",
    r"tensorboard |tail -f": "programs of others that do not end",
    r"^curl ": "asks a server; tests/serve has the same",
    r"train model=tiny": "a model that the reader writes",
    r"RUN/plans\.json": "a training of nnU-Net; tests/nn/models has one",
    r"checkpoint\.ckpt_path=weights\.pth": "weights of PyTorch; tests/nn and tests/tools have them",
}  # fmt: skip


def lines_of(path):
    """(line number, command) of each command line, continuation lines joined."""
    text = path.read_text()
    for block in re.finditer(r"```sh\n(.*?)```", text, re.DOTALL):
        first = text[: block.start()].count("\n") + 2
        body = re.sub(r"\\\n *", lambda m: "\0", block[1])
        for number, line in enumerate(body.split("\n"), first):
            if line.strip():
                yield number, line.replace("\0", "")
    prose = re.sub(r"```.*?```", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    for span in re.finditer(r"`((?:%s) [^`]*)`" % "|".join(PROGRAMS), prose):
        yield prose[: span.start()].count("\n") + 1, span[1]


def help_lines(run):
    for program in PROGRAMS:
        examples = run(f"{program} --help").stdout.partition("Examples:\n")[2].partition("\n\n")[0]
        for line in examples.split("\n"):
            if line.strip():
                yield program, line.strip()


# `key=value` in the text: of one of these.
CONTEXTS = (
    *(f"train experiment={name}" for name in (
        "im2im/segmentation", "im2im/instance", "im2im/stardist", "im2im/multitask", "im2im/labelfree", "im2im/mae", "im2im/nnunet", "im2im/vit_segmentation",
        "im2im/classification", "im2im/regression_scalar", "detection/cells", "promptable/cells", "fundus/vessels")),
    *(f"train model={name}" for name in ("unet", "seg_resnet_ds", "residual_encoder_unet", "mednext", "swin_unetr", "hiera_mae")),
    *(f"train data={name}" for name in ("folder", "class_folders", "nnunet", "decathlon")), "train loss=cross_entropy", "train scheduler=cyclic",
    "train callbacks=throughput_monitor", "train debug=profiler", "train logger=default", "train optimizer=sgd",
    "predict checkpoint.ckpt_path=x data.path=x", "export_model", "process_video", "batch_segment",
    "gpu_profile_batch", "preprocess_fundus", "serve checkpoint.ckpt_path=x",
    "train model=exported", "train logger=[prometheus]", "train metrics=[hd95,average_precision]",
    "benchmark_performance",  # the last: it takes any key, for the trainings that it starts
)  # fmt: skip
NO_OVERRIDES = {
    r"^performance=auto_cpu": "a file that `optimize` writes",
    r"^[+~]?(labels\.0|a|a\.b|a/b|k|group|group@key|key|key\.sub|list\.0|loss\.KEY)=": "of a tree that is made up",
}
PLACEHOLDER = re.compile(r"^[A-Z][A-Z_:]*$|\.\.\.|^$")
WORD = re.compile(r"^[+~]{0,2}[a-z_][\w./@]*=")


def overrides_of(path):
    """(line number, words) of each `key=value` of the text."""
    text = re.sub(r"```.*?```", lambda m: "\n" * m[0].count("\n"), path.read_text(), flags=re.DOTALL)
    for span in re.finditer(r"`([^`\n]+)`", text):
        try:
            words = shlex.split(span[1])
        except ValueError:
            continue
        if words and all(WORD.match(word) for word in words):
            yield text[: span.start()].count("\n") + 1, words


def context_of(words, run, wins):
    """A context that takes the words, or None; a value that stands for the reader's own is null. The likeliest are asked first: those that
    took a key of the same section before, or have its name."""
    filled = []
    for word in words:
        key, value = word.split("=", 1)
        filled.append(f"{key}=null" if PLACEHOLDER.search(value) else word)
    quoted = " ".join(shlex.quote(word) for word in filled)
    section = re.match(r"[+~]*(\w+)", words[0])[1]
    contexts = sorted(CONTEXTS[:-1], key=lambda context: (-wins[section, context], section not in context, -wins[context]))
    if not any(re.match(r"[+~]*\w+[.@/]", word) for word in words):  # a name without its place: of a component that is described there, or a benchmark's
        contexts.insert(0, CONTEXTS[-1])
    taker = next((context for context in contexts if run(f"{context} --cfg job {quoted}").returncode == 0), None)
    wins.update([taker, (section, taker)])
    return taker


def places(best, folder):
    """What a reader puts in for the documents' dots and names."""
    return [
        ("logs/.../best.ckpt", best), ("logs/.../run", folder), ("data.path=folder", "data.path=my_folders/raw"),
        ("data.path=images", "data.path=my_folders/raw"), ("data.path=huge.ome.zarr", "data.path=image.tif"),
        ("data.path=test.csv", "data.path=my_data/test.csv"), ("experiment=...", "experiment=im2im/segmentation data.path=my_data"),
        ("train ...", "train experiment=im2im/segmentation data.path=my_data"), ("--describe NAME", "--describe DynUNet"), ("cytra mcp FOLDER", "cytra mcp my_data"),
        ("logs/.../detector.ckpt", MODELS / "bright_detector.ts"), ("logs/.../segmenter.ckpt", MODELS / "bright_segmenter.ts"),
        ("batch_segment folder", "batch_segment my_folders/raw"), ("/tmp/kept", "kept"), ("=[dapi,gfp]", "=[raw,stain]"),
    ]  # fmt: skip


ASKS = r" (--cfg|--explain|--check|--plan|--describe|--schema|--help|-sc)\b(?!-)"  # and trains nothing


def trains(line):
    return re.match(r"(cytra )?train ", line) and not re.search(ASKS + "| --(check-data|find-lr)", line)


def is_named_later(lines):
    """Whether the newest training is what `best` or `last` names in one of the lines, before the next training."""
    for _, line in lines:
        if re.search(r"=(best|last)\b", line):
            return True
        if trains(line):
            return False
    return False


def small(line):
    """The line with limits appended, where it would train or measure for long."""
    if line.startswith(("cytra train ", "cytra predict ")):
        return "cytra " + small(line.removeprefix("cytra "))
    command = re.sub(r"\s+#\s.*", "", line)
    if re.search(ASKS, command):
        return command + (" && rm -rf local" if " --plan" in command else "")  # it writes over no file
    if command == "serve" or command.startswith("serve "):
        return command + " --check"  # it does not end
    if command.startswith("train "):
        patch = "[8,16,16]" if "_3d" in command else "[32,32]" if "experiment=models" in command else "[16,16]"
        filters = "[4,4,4,8]" if "experiment=cells" in command else "[4,4,8]"  # docs/planning.md's, of four levels
        is_square = "experiment=promptable" in command  # its network has a size and layers of its own
        command += " trainer.accelerator=cpu data.num_workers=0 trainer.max_epochs=1"
        command += " model.img_size=64" if is_square else f" 'patch_shape={patch}'"
        filters = "[8,8,8]" if "experiment=detection" in command else filters  # its norms have groups of 8
        has_filters = not re.search(r" model=|experiment=(im2im/(mae|classification|regression_scalar)|promptable|models)", command)
        command += f" 'model.filters={filters}'" if has_filters else ""
        command += " fundus_size=128" if "experiment=fundus" in command else ""
        command += " trainer.limit_train_batches=1 trainer.limit_val_batches=1 ++lr_find.num_training=20"
    elif re.match(r"(cytra )?generate_samples --output \w+$", command):
        command += " --train 6 --valid 2 --test 1 --size 48"
    elif command.startswith("generate_samples --video "):
        command = re.sub(r"--frames \d+", "--frames 6", command)
    elif command.startswith(("predict ", "benchmark_performance ", "preprocess_fundus ", "process_video ")):
        command += " trainer.accelerator=cpu"
    elif re.match(r"optimize( |$)", command):
        command = "mkdir -p mine && " + re.sub(r"--seconds \d+", "", command)
        command += " trainer.accelerator=cpu 'patch_shape=[16,16]' 'model.filters=[4,4,8]' optimize.seconds=0.1"
    elif command.startswith(("batch_segment ", "gpu_profile_batch ")):
        command = command.replace("--device cuda", "") + " --device cpu"
        command += " seconds=0.01 images=1" if command.startswith("gpu_profile_batch ") else ""
    if command.startswith("benchmark_performance "):
        command = re.sub(r"(--input-shape \d+ \d+)(( \d+)+)", lambda m: m[1] + " 32" * len(m[2].split()), command)
        if "--config" in command and "--input-shape" not in command and "im2im/mae" not in command:  # whose images have one size
            command += " input_shape=[1,1,32,32]"
        is_plain = re.search(r"--config im2im/segmentation\b", command) and "model" not in command
        command += (" 'model.filters=[4,4,8]'" if is_plain else "") + " warmup=0 repeats=1 seconds=0.01"
    return command


def write_npy(path, shape, values):
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(values))


def add_targets(data, side):
    """Columns `classes` (0, 1, 2) and `masks` (two channels) in the tables."""
    square = side * side
    write_npy(data / "classes.npy", (side, side), [3 * i // square for i in range(square)])
    write_npy(data / "masks.npy", (2, 1, side, side), [i % 2 for i in range(2 * square)])
    for table in data.glob("*.csv"):
        first, *rows = table.read_text().strip().split("\n")
        lines = [f"{first},classes,masks", *(f"{row},classes.npy,masks.npy" for row in rows)]
        table.write_text("\n".join(lines) + "\n")


def write_nifti(path, shape, values):
    """NIfTI-1 of bytes, x first; voxels of 1 mm."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, *shape, 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, 2, 8)
    struct.pack_into("<8f", header, 76, 1, 1, 1, 1, 0, 0, 0, 0)
    struct.pack_into("<2f", header, 108, 352, 1)
    struct.pack_into("<4s", header, 344, b"n+1\0")
    path.write_bytes(bytes(header) + bytes(values))


def make_volumes(root):
    """Five cases in nnU-Net's layout, with a Decathlon JSON beside them."""
    shape = (32, 32, 16)
    label = [int(x < 16) for z in range(16) for y in range(32) for x in range(32)]
    for folder in ("imagesTr", "labelsTr"):
        (root / folder).mkdir(parents=True)
    cases = [f"case_{i}" for i in range(5)]
    for i, case in enumerate(cases):
        write_nifti(root / f"imagesTr/{case}_0000.nii", shape, [50 * value + (k + i) % 7 for k, value in enumerate(label)])
        write_nifti(root / f"labelsTr/{case}.nii", shape, label)
    names = {"channel_names": {"0": "CT"}, "labels": {"background": 0, "left": 1}}
    (root / "dataset.json").write_text(json.dumps({**names, "numTraining": 5, "file_ending": ".nii"}))
    items = [{"image": f"imagesTr/{case}_0000.nii", "label": f"labelsTr/{case}.nii"} for case in cases]
    (root / "decathlon.json").write_text(json.dumps({"training": items[:4], "validation": items[4:]}))


def make_start(scratch):
    """What docs/start.md has beside the others."""
    make_volumes(scratch / "my_nnunet")
    shutil.copytree(scratch / "my_folders/raw", scratch / "my_scans/images")
    shutil.copytree(scratch / "my_folders/seg", scratch / "my_scans/masks")
    names = sorted(path.name for path in (scratch / "my_scans/images").iterdir())
    rows = [f"my_scans/images/{name},my_scans/masks/{name},{'train' if i else 'valid'}" for i, name in enumerate(names)]
    (scratch / "my_table.csv").write_text("\n".join(["raw,seg,split", *rows]) + "\n")
    for kind, chosen in (("benign", names[:3]), ("malignant", names[3:])):
        (scratch / "my_classes" / kind).mkdir(parents=True)
        for name in chosen:
            shutil.copy(scratch / "my_folders/raw" / name, scratch / "my_classes" / kind)
    for name in ("my_two_channels/raw", "my_two_channels/seg", "my_timelapse"):
        (scratch / name).mkdir(parents=True)
    mask = [i % 48 < 24 for i in range(48 * 48)]
    for i in range(5):
        grey = [60 * value + (k + i) % 5 for k, value in enumerate(mask)]
        write_npy(scratch / f"my_two_channels/raw/{i}.npy", (2, 1, 48, 48), 2 * grey)
        write_npy(scratch / f"my_two_channels/seg/{i}.npy", (48, 48), mask)
        write_npy(scratch / f"my_timelapse/raw_{i}.npy", (3, 48, 48), 3 * grey)
        write_npy(scratch / f"my_timelapse/seg_{i}.npy", (3, 48, 48), 3 * mask)
    for split, which in (("train", range(4)), ("valid", (4,))):
        rows = [f"raw_{i}.npy,seg_{i}.npy,0" for i in which]
        (scratch / f"my_timelapse/{split}.csv").write_text("\n".join(["raw,seg,start", *rows]) + "\n")


def add_annotations(scratch):
    """my_rois (GeoJSON), my_boxes (YOLO) and my_coco, of images of 48 x 48 pixels."""
    images = sorted((scratch / "my_folders/raw").glob("*.tif"))
    outline = [[[6, 6], [30, 8], [24, 30], [6, 6]]]
    feature = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": outline}, "properties": {}}
    for folder in ("my_rois/annotations", "my_boxes/labels", "my_coco/annotations"):
        (scratch / folder).mkdir(parents=True)
        shutil.copytree(scratch / "my_folders/raw", scratch / folder / "../images")
    for image in images:
        (scratch / f"my_rois/annotations/{image.stem}.geojson").write_text(json.dumps([feature]))
        (scratch / f"my_boxes/labels/{image.stem}.txt").write_text("0 0.4 0.4 0.3 0.4\n1 0.5 0.5 0.4 0.3\n")
    coco = {"images": [{"id": i, "file_name": image.name} for i, image in enumerate(images)],
            "annotations": [{"id": i, "image_id": i, "category_id": 1, "bbox": [6, 8, 20, 22]} for i in range(len(images))],
            "categories": [{"id": 1, "name": "nucleus"}]}
    (scratch / "my_coco/annotations/instances.json").write_text(json.dumps(coco))


def make_data(run, scratch):
    run("generate_samples --output my_data --train 6 --valid 2 --test 1 --size 48")
    add_targets(scratch / "my_data", 48)
    run("generate_samples --video cells.mp4 --width 160 --height 128 --frames 6")
    run("generate_samples --output my_stacks --train 1 --valid 1 --test 0 --size 32 --spatial-dims 3 --depth 16")
    run("generate_samples --kind fundus --output fundus --train 3 --valid 1 --test 0")
    (scratch / "photographs").mkdir()
    for path in (scratch / "fundus/images").glob("*_raw.png"):
        shutil.copy(path, scratch / "photographs")
    (scratch / "data").mkdir()
    (scratch / "data/samples").symlink_to(scratch / "my_data")
    shutil.copy(ROOT / "tests/golden/exported/net.pt2", scratch)
    shutil.copy(ROOT / "tests/golden/exported/functions/tversky.pt2", scratch / "loss.pt2")
    for name in ("my_folders/raw", "my_folders/seg", "my_pairs"):
        (scratch / name).mkdir(parents=True)
    rows = (scratch / "my_data/train.csv").read_text().split("\n")
    columns = rows[0].split(",")
    for i, row in enumerate(rows[1:]):
        for column, path in zip(columns, row.split(",")):
            if path and column in ("raw", "seg"):
                shutil.copy(scratch / "my_data" / path, scratch / f"my_folders/{column}/{i}.tif")
                shutil.copy(scratch / "my_data" / path, scratch / f"my_pairs/{i}_{column}.tif")
    shutil.copy(scratch / "my_folders/raw/0.tif", scratch / "image.tif")
    make_start(scratch)
    add_annotations(scratch)


def named_outputs(command):
    """Files that a command makes under names of its own: a reader's second try has others, as no program replaces them."""
    words = shlex.split(command.split(" && ")[-1])
    names = words[2:3] if words[:1] == ["process_video"] else []
    for i, word in enumerate(words):
        if word in ("--output", "--video"):
            names += itertools.takewhile(lambda name: name.endswith((".json", ".html", ".mp4")), words[i + 1 :])
        elif word.startswith("output="):
            names.append(word.split("=", 1)[1])
    return names


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "HOME": "/nonexistent",
           "MALLOC_CONF": "thp:always"}  # a program starts in an eighth less time
    failures, count, unused, ran = [], 0, dict(LEFT_OUT), set()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)

        def run(command):
            return subprocess.run(["bash", "-c", command], cwd=scratch, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)

        make_data(run, scratch)
        trained = run(small("train experiment=im2im/segmentation data.path=my_data"))
        results = dict(line.split(": ", 1) for line in trained.stdout.split("\n") if ": " in line)
        if trained.returncode != 0:
            sys.exit(f"no training to begin with:\n{trained.stderr}")
        filled = places(results["best_checkpoint"], results["output_dir"])
        chosen = [ROOT / name for name in sys.argv[2:]]
        documents = chosen or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        lines = [(f"{path.relative_to(ROOT)}:{number}", line) for path in documents for number, line in lines_of(path)]
        if not chosen:
            lines += [(f"{program} --help", line) for program, line in help_lines(run)]
        for at, (place, line) in enumerate(lines):
            reasons = [pattern for pattern in LEFT_OUT if re.search(pattern, line)]
            for pattern in reasons:
                unused.pop(pattern, None)
            if reasons:
                continue
            for name, value in filled:
                line = line.replace(name, str(value))
            if small(line) in ran and not (trains(line) and is_named_later(lines[at + 1 :])):
                continue
            ran.add(small(line))
            for name in named_outputs(small(line)):
                (scratch / name).unlink(missing_ok=True)
            begin = time.monotonic()
            done = run(small(line))
            count += 1
            print(f"{time.monotonic() - begin:6.2f} s  {done.returncode}  {place}  {small(line)}", flush=True)
            if done.returncode != 0:
                failures.append(f"{place}: exit code {done.returncode}: {small(line)}\n{done.stderr[-1500:]}")
        taken, wins = {}, collections.Counter()
        pairs = [] if chosen else [(f"{path.relative_to(ROOT)}:{number}", words) for path in documents for number, words in overrides_of(path)]
        for place, words in pairs:
            if any(re.search(pattern, words[0]) for pattern in NO_OVERRIDES):
                continue
            if tuple(words) not in taken:
                taken[tuple(words)] = context_of(words, run, wins)
            if taken[tuple(words)] is None:
                failures.append(f"{place}: no program takes {' '.join(words)}")
        print(f"{len(pairs)} keys with a value in the text")
        if len(pairs) < 100 and not chosen:
            failures.append("too few keys are found in the text")
    if not chosen:
        failures += [f"LEFT_OUT: no line fits '{pattern}'" for pattern in unused]
    print("\n".join(failures), file=sys.stderr)
    print(f"{count} command lines, {len(failures)} failures")
    sys.exit(1 if failures or (count < 40 and not chosen) else 0)


if __name__ == "__main__":
    main()
