#!/usr/bin/env python3
"""Otsu + watershed (experiments/instances/baseline.py) on a table of prepare.py: AP50, the mean over images. The parameters
are the best of valid.csv beside it; bright backgrounds are inverted as the model does. Needs scikit-image and Pillow.

    experiments/zoo/nuclei/classical.py DATA/test.csv
"""
import csv
import itertools
import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "instances"))
from baseline import objects, precision  # noqa: E402


def pairs(table):
    for row in csv.DictReader(open(table)):
        image = np.asarray(Image.open(table.parent / row["raw"]).convert("L"), float)
        low, median, high = np.percentile(image, (1, 50, 99))
        truth = np.asarray(Image.open(table.parent / row["seg"])).astype(np.int64)
        yield low + high - image if median - low > high - median else image, truth


def ap50(images, sigma, apart):
    return np.mean([precision(objects(image, False, sigma, apart), truth, 0.5) for image, truth in images])


def main():
    test = Path(sys.argv[1])
    valid = list(pairs(test.parent / "valid.csv"))
    best = max(itertools.product((0.5, 1, 2), (2, 4, 8)), key=lambda choice: ap50(valid, *choice))
    print(f"sigma, apart: {best}\nap50: {ap50(list(pairs(test)), *best):.3f}")


main()
