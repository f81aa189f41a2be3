"""What the first hours share: a lab's data, a user who types a line and reads what is printed, and a person who looks at the picture.

Each hour goes from data to a picture by `train data.path=...` and the lines that the programs print. A line that ends with another exit code than 0,
as typed or as printed, is a dead end; an hour with one fails. The programs are those of the folder BIN, the first argument.
"""
import base64
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image

PROGRAMS = "train|predict|serve|export_model|convert_image|benchmark_performance|optimize"
PRINTED = re.compile(rf"^[a-z][a-z ]*: +((?:\S*/)?(?:cytra |cytra-)?(?:{PROGRAMS}) \S.*)$", re.MULTILINE)


def discs(seed, shape, number=5):
    """An image of bright discs (balls) on a noisy ground, 16 bits, and the number of the disc that each pixel is of."""
    random = np.random.default_rng(seed)
    labels = np.zeros(shape, np.uint16)
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"))
    while labels.max() < number:
        radius = random.uniform(5, 9)
        centre = [random.uniform(min(8, side / 2 - 1), max(side - 8, side / 2)) for side in shape]
        distance = np.sqrt(sum((axis - at) ** 2 for axis, at in zip(grid, centre)))
        if not labels[distance < radius + 2].any():
            labels[distance < radius] = labels.max() + 1
    return np.clip(random.normal(1000, 100, shape) + 3000 * (labels > 0), 0, 65535).astype(np.uint16), labels


class Hour:
    def __init__(self, kind, environment=None):
        self.begin, self.lines, self.dead_ends = time.monotonic(), 0, []
        self.folder = tempfile.TemporaryDirectory(prefix=f"first_hour_{kind}_")
        self.root = pathlib.Path(self.folder.name)
        path = f"{pathlib.Path(sys.argv[1]).resolve()}:{os.environ['PATH']}"
        self.environment = {**(environment or {**os.environ, "PATH": path}), "OMP_NUM_THREADS": "1", "HOME": str(self.root)}

    def type(self, line):
        """What the line prints, results and messages."""
        begin = time.monotonic()
        done = subprocess.run(["bash", "-c", line], cwd=self.root, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        self.lines += 1
        print(f"$ {line}\n  {time.monotonic() - begin:.1f} s, exit code {done.returncode}", flush=True)
        if done.returncode != 0:
            self.dead_ends.append(f"{line}: {done.stderr[-2000:]}")
        return done.stdout + done.stderr

    def follow(self, said):
        """Types each line that was printed; what they print in turn."""
        return {line: self.type(line) for line in dict.fromkeys(PRINTED.findall(said))}

    def train(self, line, steps, patch="[64,64]"):
        """A short training that is gone on with; looks at its report, and returns what it printed."""
        said = self.type(f"{line} trainer.max_steps={steps} patch_shape={patch} optimizer.lr=3e-3 trainer.accelerator=cpu")
        understood = " ".join(re.sub(r" \(.*", "", one) for one in re.findall(r"^from the data: (.*)$", said, re.MULTILINE))
        self.type(f"{line} {understood} trainer.accelerator=cpu --check")  # as it would be typed
        followed = self.follow(said)
        for program in ("train", "predict"):
            self.expect(any(f"{program} " in one for one in followed), f"no {program} is printed")
        self.expect(any(f"steps: {2 * steps}\n" in one for one in followed.values()), "going on adds steps")
        report = pathlib.Path(result(said, "output_dir")) / "report.html"
        pictures = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", report.read_text())
        self.expect(pictures, "the report has pictures")
        for one in pictures:
            self.look(io.BytesIO(base64.b64decode(one)), "a picture of the report")
        return said

    def predict(self, launcher=""):
        """The masks of the folder `new`, by the newest training: (mask, overlay) of each image, as paths."""
        said = self.type(f"{launcher}predict checkpoint.ckpt_path=best data.path=new paths.output_dir=masks trainer.accelerator=cpu")
        self.expect("warning" not in said, said)
        pairs = [[self.root / one for one in results(said, key)] for key in ("prediction", "overlay")]
        self.expect(len(pairs[0]) == len(pairs[1]) > 0, "a mask and an overlay of each image")
        return list(zip(*pairs))

    def look(self, path, what, size=None):
        """The picture as grey values; it has the size (width, height) and shows something."""
        picture = Image.open(path)
        values = np.asarray(picture.convert("RGB"))
        self.expect(values.std() > 2, f"{what} shows something")
        self.expect(size is None or picture.size == size, f"{what} has {picture.size}, expected {size}")
        return values

    def expect(self, is_so, what):
        if not is_so:
            self.dead_ends.append(what)

    def end(self):
        print(f"{self.lines} lines, {(time.monotonic() - self.begin) / 60:.1f} minutes, {len(self.dead_ends)} dead ends")
        print(*self.dead_ends, sep="\n", file=sys.stderr)
        sys.exit(1 if self.dead_ends else 0)


def result(said, key):
    """The first value of a result."""
    return re.search(rf"^{key}: (.*)$", said, re.MULTILINE)[1]


def results(said, key):
    return re.findall(rf"^{key}: (.*)$", said, re.MULTILINE)


def dice(mask, truth):
    """Twice the common area, by the sum of both; printed, so that a first hour tells how good its model is."""
    value = 2 * np.sum(mask & truth) / max(1, np.sum(mask) + np.sum(truth))
    print(f"  Dice {value:.3f}")
    return value
