"""Bad numbers, little memory, bare environments, event files. See run.py."""
import array
import math
import os
import re
import resource
import shutil
import struct
import subprocess
import time
from pathlib import Path

from runs import Skipped, curve, expect, header, hint, run, start, value_of


def write_tiff(path, values, width, kind="f"):
    """One grey page; kind: f float32, H uint16, B uint8."""
    data = array.array(kind, values).tobytes()
    height = len(data) // array.array(kind).itemsize // width if width else 0
    tags = [(256, width), (257, height), (258, array.array(kind).itemsize * 8), (259, 1), (262, 1), (273, 8), (277, 1),
            (278, max(height, 1)), (279, len(data)), (339, 3 if kind == "f" else 1)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    Path(path).write_bytes(struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data + struct.pack("<H", len(tags)) + entries +
                           bytes(4))


def data_set(folder, image, mask, width=32, kind="f"):
    """Two good images and one given, under the name bad.tif; another good one for validation."""
    folder.mkdir(parents=True)
    good = [float((x * 7 + y * 13) % 50) for y in range(32) for x in range(32)]
    good_mask = [int(x > 16) for y in range(32) for x in range(32)]
    for name in ("a", "b", "valid"):
        write_tiff(folder / f"{name}.tif", good, 32)
        write_tiff(folder / f"{name}_mask.tif", good_mask, 32, "B")
    write_tiff(folder / "bad.tif", image, width, kind)
    write_tiff(folder / "bad_mask.tif", mask, width, "B")
    rows = [f"{name}.tif,{name}_mask.tif" for name in ("a", "b", "bad")]
    (folder / "train.csv").write_text("\n".join(["raw,seg"] + rows) + "\n")
    (folder / "valid.csv").write_text("\n".join(["raw,seg", "valid.tif,valid_mask.tif"]) + "\n")
    return folder


def numerics(programs, full, count, random):
    flat, mask = [1.0] * 1024, [int(i % 3 == 0) for i in range(1024)]
    noise = [random.uniform(0, 255) for _ in range(1024)]
    one_nan, one_inf = [math.nan] + noise[1:], [math.inf] + noise[1:]
    huge = [65535] * 500 + [0] * 524
    images = {"nan": (one_nan, mask), "all nan": ([math.nan] * 1024, mask), "inf": (one_inf, mask), "constant": (flat, mask),
              "empty mask": (noise, [0] * 1024), "full mask": (noise, [1] * 1024), "huge": (huge, mask)}
    checked = 0
    good = programs.folder / "good"
    steps = ("trainer.max_epochs=2", "data.num_workers=0")
    done = run(programs.train(good, *steps, data=data_set(programs.folder / "good data", noise, mask)))
    expect(done.returncode == 0, done.err)
    checkpoint = good / "checkpoints/last.ckpt"
    for name, (image, target) in images.items():
        kind = "H" if name == "huge" else "f"
        data = data_set(programs.folder / f"{name} data", image, target, kind=kind)
        is_bad = name in ("nan", "all nan", "inf")
        for precision in ("32", "16-mixed") if full else ("32",):
            output = programs.folder / f"{name} {precision}"
            done = run(programs.train(output, *steps, f"trainer.precision={precision}", data=data))
            checked += 1
            if is_bad:  # the reader refuses it
                expect(done.returncode == 2 and "bad.tif" in done.err, f"{name}: {done.err}")
                continue
            numbers = (output / "csv/version_0/metrics.csv").read_text()
            expect(done.returncode == 0 and "nan" not in numbers and "inf" not in numbers, f"{name}: {done.err}")
        output = programs.folder / f"predicted {name}"
        done = run(programs.predict(checkpoint, data, output))
        checked += 1
        expect(done.returncode == (2 if is_bad else 0), f"predict {name}: {done.err}")
        if is_bad:
            expect("bad.tif" in hint_of(done.err, "NaN or infinite"), f"predict {name}: {done.err}")
            expect(not (output / "bad.ome.tif").exists() and (output / "a.ome.tif").exists(), f"predict {name}: its outputs")
    empty = data_set(programs.folder / "empty data", [], [], width=0)
    for done in (run(programs.train(programs.folder / "empty", *steps, data=empty)),
                 run(programs.predict(checkpoint, empty / "bad.tif", programs.folder / "predicted empty"))):
        checked += 1
        expect(done.returncode == 2 and "bad.tif" in done.err, done.err)
    # A loss, then weights, that are not finite.
    for policy in ("stop", "skip", "dump"):
        output = programs.folder / f"diverged {policy}"
        command = programs.train(output, "optimizer=sgd", "optimizer.lr=1e8", "trainer.max_epochs=60",
                                 f"trainer.on_nonfinite={policy}")
        done = run(command)
        checked += 1
        expect(done.returncode == 6 and "(samples: " in done.err and "train_0" in done.err, f"{policy}: {done.err}")
        expect(("left out" in done.err) == (policy == "skip"), done.err)
        dumps = list((output / "nonfinite").glob("*.ckpt"))
        expect(len(dumps) == (1 if policy == "dump" else 0), f"{policy}: {dumps}")
        if dumps:  # the step again
            checked += 1
            again = run(programs.train(programs.folder / "again", "optimizer=sgd", "optimizer.lr=1e8", "trainer.max_epochs=60",
                                       f"checkpoint.ckpt_path={dumps[0]}"))
            same = re.search(r"is \S+ at step \d+ \(samples: [^)]*\)", done.err).group(0)
            expect(again.returncode == 6 and same in again.err, f"not '{same}': {again.err}")
    head, data = header(checkpoint)
    name = next(key for key in head if key.startswith("model.") and key.endswith("weight"))
    begin = head[name]["data_offsets"][0]
    head["__metadata__"].pop("xxh3")
    text = repr_json(head)
    damaged = programs.folder / "damaged.ckpt"
    damaged.write_bytes(struct.pack("<Q", len(text)) + text + data[:begin] + struct.pack("<f", math.nan) + data[begin + 4:])
    done = run(programs.predict(damaged, programs.folder / "good data", programs.folder / "predicted by nan"))
    checked += 1
    expect(done.returncode == 2 and name[len("model."):] in done.err and "NaN" in done.err, done.err)
    return f"{checked} runs", "each finite, or stopped, skipped or dumped as asked, with the image's name"


def repr_json(value):
    import json
    text = json.dumps(value).encode()
    return text + b" " * (-len(text) % 8)


def hint_of(text, part):
    return next((line for line in text.splitlines() if part in line), "")


def memory(programs, full, count, random):
    """The address space is limited, from too little for the program's libraries to enough."""
    output, levels, side = programs.folder / "unlimited", *((20, 512) if full else (3, 128))
    command = programs.train(output, "trainer.max_steps=2", f"patch_shape=[{side},{side}]", "model.filters=[16,32,32]",
                             data=programs.samples(size=side), dims=2)
    command.remove("patch_shape=[32,32]")
    process = start(command)
    most = 0
    while process.poll() is None:  # the most address space that it takes
        try:
            most = max(most, int(re.search(r"VmPeak:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text()).group(1)))
        except (OSError, AttributeError):
            pass
        time.sleep(0.01)
    process.communicate()
    expect(process.returncode == 0, "the run without a limit")
    codes = {}
    for level in range(levels):
        limit = int(most * 1024 * (0.1 + 1.9 * level / (levels - 1)))
        done = run([str(word).replace("unlimited", f"level {level}") for word in command],
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        expect(done.returncode in (0, 5), f"{limit >> 20} MB of {most >> 10}: exit {done.returncode}: {done.err}")
        if done.returncode == 5:
            expect("memory" in hint(done) and ("data.batch_size" in hint(done) or "ulimit -v" in hint(done)), hint(done))
        codes[done.returncode] = codes.get(done.returncode, 0) + 1
    expect(codes.get(5, 0) > 0 and codes.get(0, 0) > 0, f"exit codes {codes}")
    return f"{levels} levels", f"{codes[5]} times exit 5 with a hint, {codes[0]} times done"


def growth(programs, full, count, random):
    """Resident memory reaches its level early: half of a run later it is what it was, but for a few MB."""
    images, steps = (200, 1000) if full else (60, 200)
    output, slack = programs.folder / "long", 8  # MB
    done = run(programs.train(output, f"trainer.max_steps={steps}", "trainer.max_epochs=-1", "trainer.limit_val_batches=0",
                              "callbacks.model_checkpoint.every_n_train_steps=50", "trainer.accumulate_grad_batches=1",
                              "+callbacks.stats._target_=DeviceStatsMonitor"))
    expect(done.returncode == 0, done.err)
    resident = {step: float(value) for (step, name), value in curve([output]).items() if name == "device/rss_mb"}
    half, end = (max(mb for step, mb in resident.items() if step <= most) for most in (steps // 2, steps))
    expect(end <= half + slack, f"train: {half:.0f} MB in {steps // 2} steps, {end:.0f} MB in {steps}")

    folder = programs.folder / "sizes"
    folder.mkdir()
    sizes = [(random.randint(32, 400), random.randint(32, 400)) for _ in range(10)]
    for i in range(images):  # every size among the first ten, then in any order
        height, width = sizes[i] if i < len(sizes) else random.choice(sizes)
        write_tiff(folder / f"{i:03}.tif", [float((x * 7) % 53) for x in range(height * width)], width)
    masks = programs.folder / "masks"
    process = start(programs.predict(output / "checkpoints/last.ckpt", folder, masks, "inference_args.roi_size=[128,128]"))
    peaks = []  # MB, and how many images were done
    while process.poll() is None:
        try:
            peak = int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text()).group(1)) / 1024
            peaks.append((peak, len(list(masks.glob("*.ome.tif")))))
        except (OSError, AttributeError):
            pass
        time.sleep(0.01)
    process.out, process.err = process.communicate()
    expect(process.returncode == 0, process.err)
    early = max(peak for peak, written in peaks if written <= images // 2)
    late = peaks[-1][0]
    expect(late <= early + slack, f"predict: {early:.0f} MB in {images // 2} images, {late:.0f} MB in {images}")
    return (f"{steps} steps, {images} images of 10 sizes",
            f"train {half:.0f} MB at half, {end:.0f} MB at the end; predict {early:.0f} and {late:.0f} MB")


def environment(programs, full, count, random):
    checked = 0
    good = programs.folder / "a good run"
    steps = ("trainer.max_steps=1", "data.num_workers=0")
    bare = {"PATH": os.environ["PATH"]}
    expect(run(programs.train(good, *steps), env=bare | {"LANG": "C"}).returncode == 0, "a bare environment")
    checkpoint = good / "checkpoints/last.ckpt"
    locked = programs.folder / "locked"
    locked.mkdir(mode=0o555)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    surroundings = {"no HOME": {"env": bare}, "LANG=C": {"env": bare | {"LANG": "C", "LC_ALL": "C"}},
                    "a HOME that is not there": {"env": bare | {"HOME": "/proc/no/such/home"}},
                    "the name of a colour terminal without one": {"env": bare | {"TERM": "xterm-256color"}},
                    "no stdin": {"env": bare, "stdin": subprocess.DEVNULL}, "a read-only folder": {"cwd": locked}}
    is_root = os.geteuid() == 0 and shutil.which("setpriv") is not None
    if is_root:
        surroundings["nobody"] = {"cwd": "/", "prefix": nobody}
        programs.folder.chmod(0o777)
    for name, how in surroundings.items():
        how = dict(how)
        prefix = how.pop("prefix", [])
        if prefix and subprocess.run(prefix + [str(programs.bin / "train"), "--version"], capture_output=True).returncode != 0:
            continue
        for command in (programs.train(programs.folder / f"train with {name}", *steps),
                        programs.predict(checkpoint, programs.samples() / "test.csv", programs.folder / f"predict with {name}")):
            done = run(prefix + command, **how)
            checked += 1
            expect(done.returncode == 0, f"{name}: {done.err}")
            expect("\033" not in done.out + done.err, f"{name}: colour without a terminal")
    if is_root:  # writing where nobody may is one clear error
        done = run(nobody + programs.train(locked / "run", *steps), cwd="/")
        expect(done.returncode == 2 and str(locked) in done.err, done.err)
        checked += 1
    starts = 100 if full else 10
    run_at = programs.folder / "many" / "run"
    begin = time.monotonic()
    processes = [start(programs.train(run_at, *steps, "-q", "logger=none")) for _ in range(starts)]
    spread = time.monotonic() - begin
    folders = set()
    for process in processes:
        out, err = process.communicate()
        expect(process.returncode == 0, err)
        folders.add(value_of(out, "output_dir"))
    expect(len(folders) == starts, f"{starts} starts, {len(folders)} folders")
    return f"{checked} runs, {starts} starts in {spread:.1f} s", f"all done, no colour; {starts} folders"


def event_files(programs, full, count, random):
    python = Path(__file__).resolve().parents[2] / "build/peers-venv/bin/python"
    if not python.exists() or subprocess.run([python, "-c", "import tensorboard, pandas, PIL"], capture_output=True).returncode != 0:
        raise Skipped("no tensorboard in build/peers-venv")
    kills = count or (100 if full else 2)
    done = run([python, Path(__file__).resolve().parents[1] / "golden/check_tensorboard.py", programs.bin.parent, str(kills)])
    expect(done.returncode == 0, done.err[-2000:])
    return f"{kills} kills", re.search(r"all of \d+ records.*", done.out).group(0)
