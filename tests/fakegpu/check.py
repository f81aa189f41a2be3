#!/usr/bin/env python3
"""check.py BIN STAND_INS [--only WORD] [--update]: our programs on a GPU that is not there (runtime.cpp).

Each program has to end well, without a tensor on the wrong device and a call that a capture forbids. A step of training,
the difference of a longer and a shorter run, has no copy of pageable memory and no wait but for the event behind which
its loss is read, and no more launches than launches.txt says. A batch of windows that `predict` makes, the difference of
more and fewer images, is held to the same, and an image crosses once. --update writes that file: read the difference.
Kernels are not run, so nothing is said about numbers."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / "golden" / "models"
LAUNCHES = HERE / "launches.txt"
SHORT, LONG = 10, 16  # steps; what is done once, and checks of the first batches, is in both

SMALL = ("data.path=samples trainer.accelerator=gpu patch_shape=[32,32] data.batch_size=2 data.num_workers=1 "
         "trainer.num_sanity_val_steps=0 performance.num_threads=1 logger=none")
TRAIN = f"train experiment=im2im/segmentation {SMALL} model.filters=[4,8,8] trainer.steps_per_epoch=1000"
# Every option of these groups of configs/ trains for two steps and is validated. What is changed for one; None: another runs it.
TWO_STEPS = "trainer.steps_per_epoch=2 trainer.max_steps=2"
WHOLE_SEGMENTS = "performance.expandable_segments=false"  # the driver's virtual memory is not stood in for
OF_VALUES = "experiment=im2im/labelfree"
OF_CLASSES = "task.num_classes=3 model.out_channels=3"
SWEEPS = {
    "experiment": (f"train {SMALL} {TWO_STEPS}", {
        "fundus/vessels": None,  # needs retinas
        "im2im/cellpose_sam": None,  # its network is of a gigabyte
        # cuDNN's older interface refuses maps of one voxel with channels last, which have two layouts at once
        "detection/cells": "patch_shape=[64,64]",
        "models/nuclei_boxes": "patch_shape=[64,64]",
        "models/blood_cells": None,  # needs boxes of three classes; the network is that of detection/cells
        **dict.fromkeys(("im2im/segmentation_3d", "models/hippocampus"), "data.path=stacks patch_shape=[8,16,16] model.filters=[4,8,8]"),
    }),
    "model": (f"train experiment=im2im/segmentation {SMALL} {TWO_STEPS}", {
        "fcos": None, "sam": None, "sam_vit_l": None, "sam_vit_h": None, "sam_tiny": None, "cpsam": None, "stardist": None, "mae": None, "hiera_mae": None, "image_classifier": None, "multi_head": None, "vit": None,  # of experiments
        # their deepest level would be one voxel, which their instance norms refuse
        **dict.fromkeys("plain_conv_unet residual_encoder_unet swin_unetr".split(), "patch_shape=[64,64]"),
        "exported": f"model.file={HERE.parent / 'golden/exported/net.pt2'}",
    }),
    "loss": (f"{TRAIN} {TWO_STEPS}", {
        "cellpose": None, "stardist": None,
        "exported": f"loss.file={HERE.parent / 'golden/exported/functions/tversky.pt2'}",
        "cross_entropy": OF_CLASSES,
        "deep_supervision": "model.deep_supervision=true",
        **dict.fromkeys("huber l1 mse smooth_l1 ssim".split(), OF_VALUES),
    }),
    "metrics": (f"{TRAIN} {TWO_STEPS} best.monitor=val/loss best.mode=min", {
        "mean_average_precision": None,  # of experiment=detection/cells
        # of experiment=im2im/classification and im2im/regression_scalar
        **dict.fromkeys("accuracy balanced_accuracy f1 roc_auc average_precision_score r2".split()),
        **dict.fromkeys("adapted_rand average_precision object_f1 panoptic_quality variation_of_information".split(), "experiment=im2im/instance"),
        **dict.fromkeys("mae mse pearson psnr rmse ssim".split(), OF_VALUES),
    }),
    "optimizer": (f"{TRAIN} {TWO_STEPS}", {}),
    "scheduler": (f"{TRAIN} {TWO_STEPS}", {}),
    "performance": (f"{TRAIN} {TWO_STEPS} {WHOLE_SEGMENTS}", {}),
}


def swept():
    """name -> command of each option of SWEEPS that trains."""
    commands = {}
    for group, (command, changes) in SWEEPS.items():
        for file in sorted((HERE.parents[1] / "configs" / group).rglob("*.yaml")):
            option = str(file.relative_to(HERE.parents[1] / "configs" / group).with_suffix(""))
            if changes.get(option, "") is not None:
                experiment = re.search(r"experiment=\S+", changes.get(option, ""))
                own = command.replace("experiment=im2im/segmentation", "") if experiment else command
                commands[f"{group}={option}"] = f"{own} {changes.get(option, '')} {group}={option}"
    return commands


# Steps of training that are not recorded: name -> what is changed.
STEPS = {
    "32": "",
    "32 without TF32": "performance.enable_tf32=false",
    "16-mixed": "trainer.precision=16-mixed",
    "bf16-mixed": "trainer.precision=bf16-mixed",
    "16-mixed channels_first": "trainer.precision=16-mixed model.channels_last=false",
    "16-mixed 3D": "trainer.precision=16-mixed model.spatial_dims=3 patch_shape=[8,16,16] data.path=stacks",
    "clipping": "trainer.gradient_clip_val=1",
    "accumulation": "trainer.accumulate_grad_batches=2",
    "checkpointing": "model.gradient_checkpointing=true",
    "3 classes": "task.num_classes=3 model.out_channels=3",
    "3 classes weighted": "task.num_classes=3 model.out_channels=3 loss=dice_ce loss.weight=[1,2,3]",
    "weighted": "loss=dice_ce loss.weight=[2]",
    "focal": "loss=focal loss.alpha=0.25",
    "pos_weight": "loss=bce loss.pos_weight=[3]",
}
for optimizer in "adadelta adagrad adamax lion nadam novograd radam rmsprop sgd".split():
    STEPS[f"16-mixed {optimizer}"] = f"trainer.precision=16-mixed optimizer={optimizer}"
# Steps that are played as CUDA graphs, of the pass and of the update; libcytra_cuda.so makes them.
RECORDED = {
    "recorded": "model.compile_model=true",
    "recorded 16-mixed": "model.compile_model=true trainer.precision=16-mixed",
    "recorded 3 classes": "model.compile_model=true task.num_classes=3 model.out_channels=3",
    "recorded weighted": "model.compile_model=true loss=dice_ce loss.weight=[2]",
    "recorded unasked": "",  # the device takes no time: its host is what takes it
}
# Images whose windows are predicted, some batches each: name -> (what is changed, (batches, pixels) of an image).
PLANES = "data.path=samples/images checkpoint.ckpt_path={model} inference_args.roi_size=[32,32]"
STACKS = "data.path=stacks/images checkpoint.ckpt_path={model_3d} inference_args.roi_size=[8,16,16]"
BATCHES = {
    "predict 2D": (PLANES, (3, 64 * 64)),
    "predict 2D 16-mixed": (PLANES + " trainer.precision=16-mixed", (3, 64 * 64)),
    "predict 2D, CUDA graph": (PLANES + " performance.backend=cudagraph", (3, 64 * 64)),
    "predict 3D": (STACKS, (7, 16 * 32 * 32)),
    "predict 3D 16-mixed": (STACKS + " trainer.precision=16-mixed", (7, 16 * 32 * 32)),
    "predict 2D, images together": (PLANES + " data.batch_size=2", (2.5, 64 * 64)),
}
FEW, MANY = 6, 12  # images
MODELS_MADE = {"model": "trained/checkpoints/last.ckpt", "model_3d": "trained_3d/checkpoints/last.ckpt", "script": "script.pt"}
PREDICT = "predict data.path=samples/images trainer.accelerator=gpu performance.num_threads=1"
SEGMENT = f"--detector {MODELS}/bright_detector.ts --segmenter {MODELS}/bright_segmenter.ts --device cuda performance.num_threads=1"
# Programs: name -> (command, GPUs). {model} is a checkpoint, {script} one that is exported.
PROGRAMS = {
    "train": (TRAIN + " trainer.max_steps=4 trainer.steps_per_epoch=2 trainer.num_sanity_val_steps=1", 1),
    "train on two": (TRAIN + " trainer.max_steps=4 trainer.devices=2", 2),
    "train on two, checkpointing": (TRAIN + " trainer.max_steps=4 trainer.devices=2 model.gradient_checkpointing=true", 2),
    "predict": (PREDICT + " checkpoint.ckpt_path={model}", 1),
    "predict without TF32": (PREDICT + " checkpoint.ckpt_path={model} performance.enable_tf32=false", 1),
    "predict 16-mixed": (PREDICT + " checkpoint.ckpt_path={model} trainer.precision=16-mixed", 1),
    "predict CUDA graph": (PREDICT + " checkpoint.ckpt_path={model} performance.backend=cudagraph", 1),
    "predict TorchScript": (PREDICT + " checkpoint.ckpt_path={script}", 1),
    "predict on two": (PREDICT + " checkpoint.ckpt_path={model} trainer.devices=2", 2),
    "optimize": ("optimize" + TRAIN[5:] + " --detect-bottlenecks --seconds 1", 1),
    "batch_segment": (f"batch_segment samples/train.csv {SEGMENT} --preset auto", 1),
    "gpu_profile_batch": (f"gpu_profile_batch --test-image samples/images/train_0000_raw.ome.tif {SEGMENT} --benchmark-sam --profile-pipeline", 1),
    "benchmark": ("benchmark_performance --config im2im/segmentation model.filters=[4,8,8] trainer.accelerator=gpu --input-shape 1 1 32 32 "
                  "--compare-opts --train --inference performance.num_threads=1", 1),
}
PROGRAMS.update((name, (command, 1)) for name, command in swept().items())
# Which GPUs are used: name -> (command, the GPU of each process); there are two.
CHOSEN = {
    "train on the second": (TRAIN + " trainer.max_steps=4 trainer.devices=[1]", [1]),
    "train on two, the other way round": (TRAIN + " trainer.max_steps=4 trainer.devices=[1,0]", [1, 0]),
    "predict on the second": (PREDICT + " checkpoint.ckpt_path={model} trainer.devices=[1]", [1]),
}
# What is said on another GPU: name -> (command, what the stand-in is told, what is said).
TURING = {"FAKEGPU_CAPABILITY": "75"}
# The programs end as they do on a GPU, with the destructors of libtorch; many short runs that differ in an option, without.
ENDS_EARLY = {"FAKEGPU_ENDS_EARLY": "1"}
IN_HALF = "trainer.precision: 16-mixed in place of bf16-mixed"
SAID = {
    "train on Turing": (f"{TRAIN} {TWO_STEPS} performance=ampere {WHOLE_SEGMENTS}", TURING, IN_HALF),
    "predict on Turing": (PREDICT + f" checkpoint.ckpt_path={{model}} performance=ampere {WHOLE_SEGMENTS}", TURING, IN_HALF),
}
# Mistakes of users that a machine without a GPU can't meet: name -> (command, GPUs, what is said).
MISTAKES = {
    "windows on another GPU": (PREDICT + " checkpoint.ckpt_path={model} inference_args.sw_device=cuda:1", 1,
                               "inference_args.sw_device: cuda:1, but the model is on cuda:0: expected cuda"),
    "windows on the CPU": (PREDICT + " checkpoint.ckpt_path={model} inference_args.sw_device=cpu", 1,
                           "inference_args.sw_device: cpu, but the model is on the GPU: expected cuda"),
    "a GPU that is not there": (TRAIN + " trainer.devices=[0,2]", 2, "trainer.devices=[0,2]: expected GPUs from 0 to 1"),
}


class Failure(Exception):
    pass


class Stand:
    """A folder with images and a model, and programs that run in it."""

    def __init__(self, bin_folder, stand_ins, folder):
        self.bin, self.folder = pathlib.Path(bin_folder).resolve(), pathlib.Path(folder)
        self.has_kernels = (self.bin.parent / "lib" / "libcytra_cuda.so").exists()
        self.environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
        self.gpu = {"LD_PRELOAD": (pathlib.Path(stand_ins) / "preload").read_text(),
                    "TORCH_CUDNN_V8_API_DISABLED": "1"}  # of cuDNN its older interface is stood in for
        self.lock, self.runs = threading.Lock(), 0

    def run(self, command, devices=1, told=None, said="", **words):
        """The logs of its processes, by file. `told`: what the stand-in is told; `said`: a message that it gives. Throws: Failure."""
        with self.lock:
            self.runs += 1
            log = self.folder / f"{self.runs}.log"
        program, *rest = command.format(**words).split()
        if program in ("train", "predict", "optimize", "batch_segment") and "paths.output_dir" not in command:
            rest.append(f"paths.output_dir={log.stem}")
        environment = {**self.environment, "OMP_NUM_THREADS": "1"}
        if devices:
            environment |= {**self.gpu, **(told or {}), "FAKEGPU_LOG": str(log), "FAKEGPU_DEVICES": str(devices)}
        done = subprocess.run([self.bin / program, *rest], cwd=self.folder, env=environment, text=True,
                              capture_output=True, timeout=200)
        logs = {path.name: path.read_text() for path in sorted(self.folder.glob(log.name + "*"))}
        text = "".join(logs.values())
        illegal = [line[:600] for line in text.splitlines() if line.startswith(("ILLEGAL", "SUSPECT"))]
        if done.returncode or illegal:
            tail = "\n".join(illegal[:5] + done.stderr.splitlines()[-8:])
            raise Failure(f"exit code {done.returncode}: {' '.join([program, *rest])}\n{tail}")
        if said not in done.stderr:
            raise Failure(f"not said: {said}\n{done.stderr[-1500:]}")
        if devices and not logs:
            raise Failure(f"no GPU was used: {' '.join([program, *rest])}\n" + "\n".join(done.stderr.splitlines()[-8:]))
        return logs

    def counts(self, command, **words):
        return counts_of(next(iter(self.run(command, told=ENDS_EARLY, **words).values())))


def counts_of(log):
    return {name: int(count) for count, name in re.findall(r"^ *(\d+) (.+)$", log, re.M)}


def per_step(stand, changes, short=SHORT, long=LONG):
    one = stand.counts(f"{TRAIN} {changes} trainer.max_steps={short}")
    two = stand.counts(f"{TRAIN} {changes} trainer.max_steps={long}")
    difference = {name: (count - one.get(name, 0)) / (long - short) for name, count in two.items()}
    return {name: count for name, count in difference.items() if count}


def expect_quiet(counts, events, what="a step"):
    """A step that neither waits nor copies pageable memory."""
    places = "\n".join(name for name in counts if " at " in name)[:1500]
    for name, count in counts.items():
        if " at " not in name and ("PAGEABLE" in name or name.startswith("WAIT ") and name != "WAIT cudaEventSynchronize"):
            raise Failure(f"{count:g} {what}: {name}\n{places}")
    if counts.get("WAIT cudaEventSynchronize", 0) > events:
        raise Failure(f"{counts['WAIT cudaEventSynchronize']:g} waits for an event {what}, {events} are allowed")


def expect_layout(counts, name):
    """Convolutions on tensor cores, and no others, have their channels last."""
    if "bf16" in name:
        return  # cuDNN's older interface has no bfloat16: torch's own convolutions run
    first = "channels_first" in name or "without TF32" in name
    for layout, is_meant in ("channels first", first), ("channels last", not first):
        if (counts.get(f"filters, {layout}", 0) > 0) != is_meant:
            raise Failure(f"{counts.get(f'filters, {layout}', 0):g} convolutions have {layout}")


def check_steps(stand, name, known, found):
    counts = per_step(stand, STEPS[name] + " model.compile_model=false")
    expect_layout(counts, name)
    counts_on_host = name.split()[-1] in ("adagrad", "adamax", "nadam", "radam")  # and read what was skipped, a step later
    expect_quiet(counts, 2 if counts_on_host else 1)
    expect_launches(stand, name, counts, known, found)


def check_recorded(stand, name, known, found):
    if not stand.has_kernels:
        return
    counts = per_step(stand, RECORDED[name], 14, 20)
    expect_quiet(counts, 1)
    if counts.get("cudaGraphLaunch", 0) != 2:
        raise Failure(f"{counts.get('cudaGraphLaunch', 0):g} graphs are launched a step, not 2")
    expect_launches(stand, name, counts, known, found)


def check_batches(stand, name, known, found):
    changes, (batches, pixels) = BATCHES[name]
    command = f"predict trainer.accelerator=gpu performance.num_threads=1 predict.overlay=false {changes}"
    few, many = (stand.counts(f"{command} trainer.limit_predict_batches={images}", **MODELS_MADE) for images in (FEW, MANY))
    image = {key: (count - few.get(key, 0)) / (MANY - FEW) for key, count in many.items()}
    image = {key: count for key, count in image.items() if count}
    together = "together" in name
    allowed = {"WAIT cudaStreamSynchronize": 1.5} if together else {}  # an image's result; of two, whether they are finite
    for key in allowed:
        if image.pop(key, 0) > allowed[key]:
            raise Failure(f"more than {allowed[key]} an image: {key}")
    expect_quiet(image, 0, "an image")
    up = image["copy host(pinned) to device bytes"]
    if not 4 * pixels <= up <= 1.2 * 4 * pixels:
        raise Failure(f"{up:g} bytes go up for an image of {4 * pixels}")
    expect_launches(stand, name, {"launches": image["launches"] / batches}, known, found)


def expect_launches(stand, name, counts, known, found):
    found[name] = round(counts["launches"])
    if stand.has_kernels and known is not None and found[name] > known.get(name, 0):
        raise Failure(f"{found[name]} launches, {known.get(name, 0)} are allowed (launches.txt)")


def check_program(stand, name, known, found):
    command, devices = PROGRAMS[name]
    logs = stand.run(command, devices, told=ENDS_EARLY if "=" in name else None, **MODELS_MADE)  # an option of SWEEPS
    if name in ("predict", "predict without TF32", "predict 16-mixed", "predict on two"):
        for log in logs.values():
            expect_layout(counts_of(log), name)
    if devices > 1:
        expect_devices(logs, range(devices))


def expect_devices(logs, gpus):
    """Each process uses its GPU, and no other one."""
    for rank, gpu in enumerate(gpus):
        own = next(text for file, text in logs.items() if file.endswith(".log" if rank == 0 else f".rank{rank}"))
        used = [float(used) for used in re.findall(r"^device \d: peak ([\d.]+) MB", own, re.M)]
        if used[gpu] == 0 or sum(used) > used[gpu]:
            raise Failure(f"process {rank} used {used} MB of the devices")


def check_chosen(stand, name, known, found):
    command, gpus = CHOSEN[name]
    expect_devices(stand.run(command, 2, **MODELS_MADE), gpus)


def check_said(stand, name, known, found):
    command, told, said = SAID[name]
    stand.run(command, told=told, said=said, **MODELS_MADE)


def check_mistake(stand, name, known, found):
    command, devices, said = MISTAKES[name]
    try:
        stand.run(command, devices, **MODELS_MADE)
    except Failure as failure:
        if str(failure).startswith("exit code 2:") and said in str(failure):
            return
        raise
    raise Failure(f"exit code 0, but not said: {said}")


def prepare(folder, run):
    """Images, stacks, a checkpoint and its export, which the commands name; run(command) starts a program in the folder."""
    run("generate_samples --output samples --train 4 --valid 1 --test 1 --size 64")
    for table in folder.glob("samples/*.csv"):  # as the experiments call it, and a class and a number for each image
        head, *rows = table.read_text().replace("stain", "target", 1).splitlines()
        rows = [f"{row},{number % 2},{number}" for number, row in enumerate(rows)]
        table.write_text("\n".join([head + ",label,value", *rows]) + "\n")
    run("generate_samples --output stacks --train 4 --valid 1 --test 1 --size 32 --spatial-dims 3 --depth 16")
    run(TRAIN.replace("=gpu", "=cpu") + " trainer.max_steps=1 paths.output_dir=trained")
    run(TRAIN.replace("=gpu", "=cpu").replace("data.path=samples", "data.path=stacks").replace("[32,32]", "[8,16,16]")
        + " model.spatial_dims=3 trainer.max_steps=1 paths.output_dir=trained_3d")
    run("export_model checkpoint.ckpt_path=trained/checkpoints/last.ckpt format=torchscript output=script.pt")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("stand_ins")
    parser.add_argument("--only", default="", help="what has this word in its name")
    parser.add_argument("--update", action="store_true", help="write launches.txt")
    options = parser.parse_args()
    known = dict(re.findall(r"^(.+?) +(\d+)$", LAUNCHES.read_text(), re.M)) if LAUNCHES.exists() else {}
    known = None if options.update else {name: int(count) for name, count in known.items()}
    checks = [(check, name) for check, table in ((check_program, PROGRAMS), (check_mistake, MISTAKES), (check_chosen, CHOSEN),
                                               (check_said, SAID), (check_batches, BATCHES),
                                               (check_recorded, RECORDED), (check_steps, STEPS))
              for name in table if options.only in name]
    found, failed, begin = {}, [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        stand = Stand(options.bin, options.stand_ins, folder)
        prepare(stand.folder, lambda command: stand.run(command, 0))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            running = {pool.submit(check, stand, name, known, found): name for check, name in checks}
            for done in concurrent.futures.as_completed(running):
                problem = done.exception()
                print(f"{'FAILED' if problem else 'ok':7}{running[done]}" + (f": {found[running[done]]} launches" if running[done] in found else ""))
                if problem:
                    failed.append(running[done])
                    print("    " + str(problem or repr(problem)).replace("\n", "\n    "))
    print(f"{len(checks)} checks, {stand.runs} programs, {time.monotonic() - begin:.0f} s; failed: {', '.join(failed) or 'none'}")
    if options.update and not options.only:
        LAUNCHES.write_text("".join(f"{name:28}{found[name]:5}\n" for table in (STEPS, RECORDED, BATCHES) for name in table if name in found))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
