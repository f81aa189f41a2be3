#!/usr/bin/env python3
"""doc_pictures.py BIN: makes docs/images/task_*.png, the pictures of docs/start.md: at the left an image of generate_samples, at the
right what a model learns from it. Needs numpy, pillow and tifffile."""

import csv
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tifffile
from PIL import Image, ImageDraw, ImageOps

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIDE = 128
COLOURS = np.array([[230, 85, 60], [70, 150, 230], [250, 200, 60], [90, 190, 100], [170, 110, 210], [60, 200, 200]], np.uint8)


def read(path):
    return np.squeeze(tifffile.imread(path) if path.suffix in (".tif", ".tiff") else np.asarray(Image.open(path)))


def grey(values):
    """(Y,X) or (Y,X,3) stretched to bytes of three channels."""
    low, high = np.percentile(values, (0.5, 99.8))
    stretched = np.clip((values - low) / max(high - low, 1e-6), 0, 1)
    channels = stretched if stretched.ndim == 3 else np.repeat(stretched[..., None], 3, axis=2)
    return np.round(255 * channels).astype(np.uint8)


def coloured(labels):
    """Each number in a colour of its own; 0 is black."""
    picture = COLOURS[(labels - 1) % len(COLOURS)]
    picture[labels == 0] = 0
    return picture


def classes_of(labels):
    """1 within each object, 2 at its edge."""
    same = np.ones(labels.shape, bool)
    for axis in (0, 1):
        for step in (-1, 1):
            same &= np.roll(labels, step, axis) == labels
    return np.where(labels == 0, 0, np.where(same, 1, 2))


def boxes_of(image, labels):
    picture = Image.fromarray(image)
    draw = ImageDraw.Draw(picture)
    for label in np.unique(labels[labels > 0]):
        y, x = np.nonzero(labels == label)
        draw.rectangle((x.min(), y.min(), x.max(), y.max()), outline=tuple(int(v) for v in COLOURS[2]))
    return np.asarray(picture)


def hidden(image):
    """The image with three of four patches of 16 pixels blackened."""
    keep = np.random.default_rng(0).permutation((SIDE // 16) ** 2).reshape(SIDE // 16, -1) % 4 == 0
    return image * np.kron(keep, np.ones((16, 16), bool))[..., None]


def save(name, left, right):
    pair = Image.new("RGB", (2 * SIDE + 4, SIDE), "white")
    for x, picture in ((0, left), (SIDE + 4, right)):
        pair.paste(ImageOps.fit(Image.fromarray(picture), (SIDE, SIDE), Image.Resampling.LANCZOS), (x, 0))
    pair.quantize(64).save(ROOT / f"docs/images/task_{name}.png", optimize=True)


def sample(program, folder, *arguments):
    """The images in the first row of a generated data set, by column."""
    subprocess.run([program, "--output", folder, "--train", "1", "--valid", "0", "--test", "0", "--seed", "4", *arguments], check=True)
    row = next(csv.DictReader((folder / "train.csv").open()))
    return {key: read(folder / cell) for key, cell in row.items() if (folder / cell).is_file()}


def main():
    program = pathlib.Path(sys.argv[1]).resolve() / "generate_samples"
    with tempfile.TemporaryDirectory() as scratch:
        cells = sample(program, pathlib.Path(scratch) / "cells", "--size", str(SIDE))
        retina = sample(program, pathlib.Path(scratch) / "retinas", "--kind", "fundus")
    image, labels = grey(cells["raw"]), cells["instances"].astype(int)
    save("mask", image, grey((labels > 0).astype(float)))
    save("classes", image, coloured(classes_of(labels)))
    save("objects", image, coloured(labels))
    save("boxes", image, boxes_of(image, labels))
    save("stain", image, grey(cells["stain"]))
    save("mae", hidden(image), image)
    save("retina", grey(retina["raw"]), grey(retina["seg"].astype(float)))


if __name__ == "__main__":
    main()
