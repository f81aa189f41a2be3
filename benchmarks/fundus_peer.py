"""Photographs of retinas at one place, size and contrast, by OpenCV and NumPy: fundus_peer.py FOLDER OUTPUT."""
import csv
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np

SIZE = 512


def find(image):
    """OpenCV's ellipse around what is bright: centre, axes, degrees."""
    scale = max(1, -(-max(image.shape) // 512))
    grey = cv2.resize(image, None, fx=1 / scale, fy=1 / scale, interpolation=cv2.INTER_AREA).mean(2).astype(np.uint8)
    _, bright = cv2.threshold(cv2.GaussianBlur(grey, (0, 0), 1), 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    contour = max(cv2.findContours(bright, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0], key=cv2.contourArea)
    (x, y), (a, b), degrees = cv2.fitEllipse(contour)
    half = (scale - 1) / 2
    return x * scale + half, y * scale + half, a * scale / 2, b * scale / 2, degrees


def work(path, output):
    image = cv2.imread(str(path))
    x, y, a, b, degrees = find(image)
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn, radius, middle = np.array([[cosine, -sine], [sine, cosine]]), SIZE / 2, (SIZE - 1) / 2
    matrix = turn @ np.diag([a, b]) @ turn.T / radius
    shift = np.array([x, y]) - matrix @ [middle, middle]
    block = max(1, int(min(a, b) / radius))
    small = cv2.resize(image, None, fx=1 / block, fy=1 / block, interpolation=cv2.INTER_AREA)
    affine = np.hstack([matrix, (shift - (block - 1) / 2)[:, None]]) / block
    view = cv2.warpAffine(small.astype(np.float32), affine, (SIZE, SIZE), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    i, j = np.mgrid[:SIZE, :SIZE] - middle
    mask = (i * i + j * j <= (0.99 * radius) ** 2).astype(np.float32)
    view *= mask[..., None]
    share = view / 255
    weight = np.maximum(cv2.GaussianBlur(mask, (0, 0), 0.05 * radius, borderType=cv2.BORDER_CONSTANT), 1e-3)
    blurred = cv2.GaussianBlur(share, (0, 0), 0.05 * radius, borderType=cv2.BORDER_CONSTANT) / weight[..., None]
    contrast = np.clip(4 * (share - blurred) + 0.5, 0, 1) * mask[..., None]
    for folder, values in (("images", view), ("contrast", contrast * 255), ("masks", mask * 255)):
        cv2.imwrite(str(output / folder / path.name), np.round(values).astype(np.uint8))
    return [path, y, x, max(a, b), min(a, b), degrees]


def main():
    cv2.setNumThreads(1)  # the pool's threads are enough
    source, output = map(pathlib.Path, sys.argv[1:])
    for folder in ("images", "contrast", "masks"):
        (output / folder).mkdir(parents=True)
    with ThreadPoolExecutor(2) as pool, open(output / "fundus.csv", "w", newline="") as table:
        rows = csv.writer(table)
        rows.writerow(["image", "y", "x", "major", "minor", "degrees"])
        rows.writerows(pool.map(lambda path: work(path, output), sorted(source.iterdir())))


if __name__ == "__main__":
    main()
