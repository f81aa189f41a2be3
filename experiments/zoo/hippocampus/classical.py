#!/usr/bin/env python3
"""An atlas without registration: the most frequent class at each place of train.csv's volumes, scaled to each of test.csv's. Dice, the
mean over volumes. Needs nibabel and scipy.

    experiments/zoo/hippocampus/classical.py DATA
"""
import csv
import sys
from pathlib import Path

import nibabel
import numpy as np
from scipy import ndimage

SIZE = (36, 50, 36)


def labels(table):
    for row in csv.DictReader(open(Path(sys.argv[1]) / table)):
        yield np.asarray(nibabel.load(row["seg"]).dataobj).astype(int)


def scaled(volume, size):
    return ndimage.zoom(volume, np.divide(size, volume.shape), order=1, grid_mode=True, mode="nearest")


atlas = sum(np.stack([scaled((one == c).astype(float), SIZE) for c in range(3)]) for one in labels("train.csv"))
scores = []
for truth in labels("test.csv"):
    found = np.stack([scaled(of_class, truth.shape) for of_class in atlas]).argmax(0)
    scores.append([2 * ((found == c) & (truth == c)).sum() / ((found == c).sum() + (truth == c).sum()) for c in (1, 2)])
print("anterior, posterior:", np.mean(scores, 0).round(3))
