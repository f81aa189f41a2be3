#!/usr/bin/env python3
"""BCCD (MIT): smears of blood with boxes of red cells, white cells and platelets, as three tables: train.csv, valid.csv, test.csv.

prepare.py BCCD OUT: BCCD holds JPEGImages/, Annotations/ and ImageSets/Main/, as the folder of that name in the repository
Shenggan/BCCD_Dataset, whose own parts are taken.
"""
import csv
import sys
from pathlib import Path


def main():
    source, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for table, part in (("train", "train"), ("valid", "val"), ("test", "test")):
        names = (source / f"ImageSets/Main/{part}.txt").read_text().split()
        with open(out / f"{table}.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("raw", "boxes"))
            rows.writerows((source / f"JPEGImages/{name}.jpg", source / f"Annotations/{name}.xml") for name in names)
        print(f"{table}: {len(names)} images")


main()
