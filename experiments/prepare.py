#!/usr/bin/env python3
"""experiments/prepare.py STUDY REALDATA OUTPUT: targets and tables of a study, for run.sh and for benchmarks/learning_peer.py.

scribbles    OUTPUT/fold_K/{train,valid}.csv: BBBC007's crops, one left out; 0 not labelled, 1 background, 2 nuclei
membranes    OUTPUT/fold_K/...: the borders of labelled cells, 1; 2 where no cell is labelled (ignored); of two stacks one left out
labelfree    OUTPUT/fold_0/...: actin and nuclei of one field; columns 0-659 are trained on, 660-1099 predicted
mae          OUTPUT/{pretrain,fold_0}/...: borders of maize cells; rows 0-399 to learn from without labels, of these columns 0-63
             with, rows 400-639 predicted
"""
import csv
import sys
from pathlib import Path

import numpy as np
import tifffile


def table(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["raw", "seg"], *rows])


def borders(labels, margin=1):
    """1 where another label is within `margin` voxels along an axis."""
    found = np.zeros(labels.shape, bool)
    for axis in range(labels.ndim):
        a = np.moveaxis(labels, axis, 0)
        f = np.moveaxis(found, axis, 0)
        differs = a[1:] != a[:-1]
        for shift in range(margin):
            f[1 + shift :] |= differs[: len(differs) - shift]
            f[: len(a) - 1 - shift] |= differs[shift:]
    return found.astype(np.uint8)


def scribbles(data, out):
    folder = data / "bianb" / "BBBC007"
    pairs = [(i, folder / "masks" / i.name) for i in sorted((folder / "images").glob("*.tif"))]
    for k, left_out in enumerate(pairs):
        table(out / f"fold_{k}" / "train.csv", [p for p in pairs if p != left_out])
        table(out / f"fold_{k}" / "valid.csv", [left_out])


def membranes(data, out):
    pairs = []
    out.mkdir(parents=True, exist_ok=True)
    for k in range(2):
        labels = tifffile.imread(data / f"plantseg/training_sources/rgb_3D_{k}_segm.tiff")
        target = borders(labels)
        target[labels == 0] = 2
        tifffile.imwrite(out / f"borders_{k}.tif", target, imagej=True, metadata={"axes": "ZYX"})
        pairs.append((data / f"plantseg/training_sources/rgb_3D_{k}.tiff", out / f"borders_{k}.tif"))
    for k in range(2):
        table(out / f"fold_{k}" / "train.csv", [pairs[1 - k]])
        table(out / f"fold_{k}" / "valid.csv", [pairs[k]])


def crops(out, part, image, target, rows):
    out.mkdir(parents=True, exist_ok=True)
    names = [out / f"{part}_raw.tif", out / f"{part}_seg.tif"]
    for name, values in zip(names, (image, target)):
        tifffile.imwrite(name, values)
    table(out / f"{rows}.csv", [names])


def labelfree(data, out):
    image, target = (tifffile.imread(data / "bianb" / f"BPAE_{s}.tif").astype(np.float32) for s in ("actin", "nuclei"))
    fold = out / "fold_0"
    crops(fold, "left", image[:, :660], target[:, :660], "train")
    crops(fold, "right", image[:, 660:], target[:, 660:], "valid")


def mae(data, out):
    image = tifffile.imread(data / "bianb" / "maize_clsm.tif")
    target = borders(tifffile.imread(data / "bianb" / "maize_clsm_labels.tif"), 2)
    for folder, columns in (("pretrain", 639), ("fold_0", 64)):
        crops(out / folder, "train", image[:400, :columns], target[:400, :columns], "train")
        crops(out / folder, "valid", image[400:], target[400:], "valid")


if __name__ == "__main__":
    studies = dict(scribbles=scribbles, membranes=membranes, labelfree=labelfree, mae=mae)
    if len(sys.argv) != 4 or sys.argv[1] not in studies:
        sys.exit(__doc__)
    studies[sys.argv[1]](Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve())
