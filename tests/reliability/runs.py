"""Runs of the programs for tests/reliability/run.py: small data, commands, what a run left behind."""
import csv
import json
import os
import re
import signal
import struct
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMES = {"data_time", "step_time", "epoch", "step"}


class Failed(Exception):
    """A promise was not kept."""


class Skipped(Exception):
    """This machine can't do the test."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


class Programs:
    def __init__(self, build, folder):
        self.bin, self.tests, self.folder = Path(build).resolve() / "bin", Path(build).resolve() / "tests", Path(folder)

    def samples(self, dims=2, train=6, valid=1, test=2, size=64):
        """A folder of made images, made once."""
        path = self.folder / f"samples {dims}D {train} {valid} {test}"
        if not path.exists():
            subprocess.run([self.bin / "generate_samples", "--output", path, "--train", str(train), "--valid", str(valid),
                            "--test", str(test), "--size", str(size), "--spatial-dims", str(dims), "--depth", "16",
                            "--seed", "3"], check=True, capture_output=True)
        return path

    def train(self, output, *more, data=None, dims=2):
        """A command: every part of a training whose state a checkpoint has to hold, small."""
        experiment = "im2im/segmentation" + ("_3d" if dims == 3 else "")
        return [self.bin / "train", f"experiment={experiment}", "trainer.steps_per_epoch=null", "callbacks.early_stopping=null",
                f"data.path={data or self.samples(dims)}",
                f"paths.output_dir={output}", "trainer.accelerator=cpu", "model.filters=[4,8,8]", "model.dropout=0.1",
                f"patch_shape={'[16,32,32]' if dims == 3 else '[32,32]'}", "data.batch_size=1", "data.num_workers=2",
                "trainer.accumulate_grad_batches=2", "trainer.log_every_n_steps=1", "performance.num_threads=1",
                "callbacks.model_checkpoint.every_n_train_steps=1", "+callbacks.ema._target_=EMAWeightAveraging",
                "+callbacks.ema.decay=0.9", "scheduler=warmup_cosine", "scheduler.warmup_steps=5", *more]

    def predict(self, checkpoint, data, output, *more):
        return [self.bin / "predict", f"checkpoint.ckpt_path={checkpoint}", f"data.path={data}", "trainer.accelerator=cpu",
                f"paths.output_dir={output}", "performance.num_threads=1", *more]


def start(command, **how):
    """In a process group of its own, with files for what it says: a full pipe must not stop it."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True} | how
    return subprocess.Popen([str(word) for word in command], **how)


def run(command, **how):
    process = start(command, **how)
    process.out, process.err = process.communicate()
    expect("terminate called" not in process.err and "frame #" not in process.err, process.err)
    return process


def is_gone(process):
    """Nothing of its group is left."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def value_of(text, key):
    found = re.search(rf"^{key}: (.*)$", text, re.M)
    return found.group(1) if found else None


def header(path):
    """Of a safetensors file: its header, and the bytes after it."""
    data = Path(path).read_bytes()
    length, = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + length]), data[8 + length:]


def state(path):
    return json.loads(header(path)[0]["__metadata__"]["state"])


def comparable(path):
    """All of a checkpoint but times and folders."""
    head, data = header(path)
    kept = re.sub(r'"(seconds|best_path)":("(?:[^"\\]|\\.)*"|[^,}]*)', "", head.pop("__metadata__")["state"])
    return {name: entry for name, entry in head.items()}, data, re.sub(r'"(?:[^"\\]|\\.)*/checkpoints/', '"', kept)


def run_folders(output):
    """Of all processes that wrote to `output`, in the order of their starts."""
    output = Path(output)
    numbers = [(int(path.name[len(output.name) + 1:] or 0) if path != output else 0, path)
               for path in output.parent.glob(output.name + "*") if path.is_dir()]
    return [path for _, path in sorted(numbers)]


def curve(folders):
    """Every logged number by (step, name); what a later process wrote wins."""
    numbers = {}
    for folder in folders:
        for path in folder.glob("csv/*/metrics.csv"):
            lines = path.read_text()
            expect(not lines or lines.endswith("\n"), f"{path}: half a row")
            for row in csv.DictReader(lines.splitlines()):
                numbers |= {(int(row["step"]), name): value for name, value in row.items()
                            if value and name not in TIMES}
    return numbers


def expect_same(folders, whole):
    """Their joined loss curve, their last weights and state are those of the uninterrupted run."""
    expected, got = curve([whole]), curve(folders)
    differs = {key: (expected.get(key), got.get(key)) for key in expected.keys() | got.keys()
               if expected.get(key) != got.get(key)}
    expect(not differs, f"{folders[0]}: of {len(expected)} numbers {len(differs)} differ: {sorted(differs.items())[:5]}")
    last = [next(path for folder in reversed(some) if (path := folder / "checkpoints/last.ckpt").exists())
            for some in (folders, [whole])]
    for what, one, other in zip(("tensors", "bytes", "state"), *map(comparable, last)):
        expect(one == other, f"{last[0]}: other {what} than {last[1]}" + (f": {one} {other}" if what == "state" else ""))
    return len(expected)


def temporaries(folder):
    """Files half written."""
    return set(Path(folder).rglob(".*.tmp.*"))


def hint(process):
    return (process.err.strip().splitlines() or ["(silent)"])[-1]


SIGNALS = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGUSR1: 75, signal.SIGHUP: 129}
