#!/usr/bin/env python3
"""The images of a table, resampled so that the median diameter of each one's nuclei is D pixels: OUT/D.csv for each D, with which
`predict data.path=OUT/D.csv data.with_target=true` scores. Needs numpy and Pillow.

    experiments/zoo/nuclei/scales.py DATA/test_fluorescence.csv OUT D...
"""
import csv
import sys
from pathlib import Path

import numpy as np
from PIL import Image

table, out = Path(sys.argv[1]), Path(sys.argv[2])
pairs = [[Image.open(table.parent / row[key]) for key in ("raw", "seg")] for row in csv.DictReader(open(table))]
for wanted in map(float, sys.argv[3:]):
    folder = out / f"{wanted:g}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(out / f"{wanted:g}.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("raw", "seg"))
        for number, (image, labels) in enumerate(pairs):
            areas = np.bincount(np.asarray(labels).ravel())[1:]
            factor = wanted / np.median(np.sqrt(areas[areas > 0] * 4 / np.pi))
            size = [max(round(side * factor), 1) for side in image.size]
            names = [f"{wanted:g}/{number}_{key}.png" for key in ("raw", "seg")]
            image.convert("L").resize(size, Image.Resampling.BOX if factor < 1 else Image.Resampling.BILINEAR).save(out / names[0])
            labels.resize(size, Image.Resampling.NEAREST).save(out / names[1])
            rows.writerow(names)
