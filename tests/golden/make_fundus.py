#!/usr/bin/env python3
"""Writes fundus.json: ellipses that OpenCV fits to points, and discs that it finds in generated retinas.

    build/peers-venv/bin/python tests/golden/make_fundus.py build/release/bin/generate_samples ../shared/realdata/skimage/retina.jpg

fits: points and cv2.fitEllipse's answer (centre, semi axes, radians of the major axis from x towards y).
discs: threshold, largest contour and fitEllipse on the images of `generate_samples --kind fundus --seed 3`, where OpenCV is right: its
contour follows bars and the image's border, too.
contrast: 4 (x - blur(x)) + 0.5 by cv2.GaussianBlur of all pixels within the disc, at every 8th pixel of a pattern.
retina: as discs, of scikit-image's retina.jpg, which the second argument names.
"""
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy as np


def answer(points):
    (x, y), (width, height), degrees = cv2.fitEllipse(points)
    turn = math.radians(degrees) + (math.pi / 2 if height > width else 0)
    return {"x": x, "y": y, "major": max(width, height) / 2, "minor": min(width, height) / 2, "angle": turn % math.pi}


def fits(rng):
    for noise in (0.0, 0.05, 0.3, 1.0):
        for share in (1.0, 0.7):
            angle, x, y = rng.uniform(0, math.pi), rng.uniform(-50, 900), rng.uniform(-50, 900)
            major = rng.uniform(80, 300)
            minor = major * rng.uniform(0.7, 0.9)
            t = np.linspace(0, 2 * math.pi * share, 80, endpoint=False)
            u, v = major * np.cos(t), minor * np.sin(t)
            points = np.stack([x + math.cos(angle) * u - math.sin(angle) * v, y + math.sin(angle) * u + math.cos(angle) * v], 1)
            points = (points + noise * rng.standard_normal(points.shape)).astype(np.float32).round(3)
            yield {"noise": noise, "points": [[round(float(a), 3) for a in p] for p in points], **answer(points)}


def disc(path):
    """None: touches the border, so that its contour is no ellipse."""
    grey = cv2.GaussianBlur(cv2.imread(str(path)).mean(2).astype(np.float32), (0, 0), 1)
    corner = grey[: grey.shape[0] // 16, -(grey.shape[1] // 16) :].mean()
    bright = (grey > corner + 0.15 * (np.percentile(grey, 75) - corner)).astype(np.uint8)
    contour = max(cv2.findContours(bright, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0], key=cv2.contourArea)[:, 0]
    if contour.min() == 0 or (contour.max(0) >= np.array(grey.shape[::-1]) - 1).any():
        return None
    return answer(contour)


def contrast(sigma):
    i, j = np.mgrid[:128, :128]
    x = 0.5 + 0.3 * np.sin(i * 0.13) * np.cos(j * 0.09) + 0.1 * ((i * 7 + j * 13) % 11) / 11
    mask = ((i - 63.5) ** 2 + (j - 63.5) ** 2 <= (64 * 0.99) ** 2).astype(float)
    blur = lambda a: cv2.GaussianBlur(np.pad(a, 128), (0, 0), sigma * 64)[128:-128, 128:-128]
    enhanced = np.clip(4 * (x - blur(x * mask) / np.maximum(blur(mask), 1e-3)) + 0.5, 0, 1) * mask
    return [round(float(v), 6) for v in enhanced[::8, ::8].ravel()]


def main():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.argv[1], "--kind", "fundus", "--output", folder, "--train", "100", "--valid", "0", "--test", "0", "--seed", "3"]
        subprocess.run(command, check=True)
        rows = list(csv.DictReader(open(folder + "/train.csv")))
        found = []
        for index, row in enumerate(rows):
            one = disc(pathlib.Path(folder, row["raw"]))
            if one is None:
                continue
            radius = math.sqrt(float(row["major"]) * float(row["minor"]))
            error = math.hypot(one["x"] - float(row["x"]), one["y"] - float(row["y"])) / radius
            if error < 0.01 and abs(math.sqrt(one["major"] * one["minor"]) / radius - 1) < 0.01:
                found.append({"index": index, **one})
    golden = {"opencv": cv2.__version__, "fits": list(fits(np.random.default_rng(0))), "discs": found, "retina": disc(sys.argv[2])}
    golden["contrast"] = {str(sigma): contrast(sigma) for sigma in (0.05, 0.2)}
    path = pathlib.Path(__file__).with_name("fundus.json")
    path.write_text(json.dumps(golden) + "\n")
    print(f"{path.name}: {len(golden['fits'])} fits, {len(found)} discs")


if __name__ == "__main__":
    main()
