#!/usr/bin/env python3
"""Writes coco_rle.json: masks of random pixels as pycocotools writes them.

    python tests/golden/make_coco_rle.py [--output FOLDER]    (needs benchmarks/requirements.txt, pycocotools)

`mask`: rows as texts of 0 and 1; `counts`, `area`, `bbox`: what pycocotools.mask makes of it.
"""
import argparse
import json
from pathlib import Path

import numpy as np
from pycocotools import mask as coco

RNG = np.random.default_rng(4)


def masks():
    yield np.zeros((3, 4))
    yield np.ones((5, 3))
    yield np.ones((1, 1))
    yield np.pad(np.ones((4, 7)), ((0, 0), (2, 3)))  # columns from the top to the bottom
    yield np.pad(np.ones((4, 1)), ((1, 2), (0, 5)))
    y, x = np.mgrid[:40, :70]
    yield (y - 18) ** 2 + (x - 33) ** 2 < 150  # longer counts, and differences below 0
    yield ((y - 18) ** 2 + (x - 33) ** 2 < 300) & (x % 9 > 0)
    for height, width, share in ((6, 9, 0.5), (17, 5, 0.1), (12, 13, 0.9), (1, 30, 0.4), (30, 1, 0.4)):
        yield RNG.random((height, width)) < share


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default=Path(__file__).parent, type=Path)
    cases = []
    for mask in masks():
        pixels = np.asfortranarray(mask.astype(np.uint8))
        rle = coco.encode(pixels)
        cases.append(
            {
                "mask": ["".join(map(str, row)) for row in pixels],
                "counts": rle["counts"].decode(),
                "area": int(coco.area(rle)),
                "bbox": [int(side) for side in coco.toBbox(rle)],
            }
        )
    path = parser.parse_args().output / "coco_rle.json"
    path.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
