#!/usr/bin/env python3
"""Task 4 of the Medical Segmentation Decathlon (CC BY-SA 4.0) as three tables: train.csv, valid.csv, test.csv.

prepare.py TRAININGSET OUT: TRAININGSET holds images/hippocampus_NNN.nii.gz and labels/, as data/TrainingSet in the repository
udacity/nd320-c3-3d-imaging-starter. Held out are the numbers that end in 3 or 8 (each is one person), validation those
that end in 0.
"""
import csv
import sys
from pathlib import Path


def main():
    source, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    tables = {"train": [], "valid": [], "test": []}
    for label in sorted((source / "labels").glob("hippocampus_*.nii.gz")):
        image = source / "images" / label.name
        last = label.name.split(".")[0][-1]
        if image.is_file():
            tables["test" if last in "38" else "valid" if last == "0" else "train"].append((image, label))
    for name, rows in tables.items():
        with open(out / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([("raw", "seg"), *rows])
        print(f"{name}: {len(rows)} volumes")


main()
