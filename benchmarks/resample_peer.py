"""CPU seconds of SciPy and PyTorch: resample_peer.py VOLUME.npy; with SIZE...: writes it first."""
import json
import sys
import time

import numpy as np
import torch
from scipy import ndimage


def seconds(work, repeats=2):
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def main():
    path, *size = sys.argv[1:]
    if size:
        return np.save(path, np.random.default_rng(0).random(tuple(map(int, size)), np.float32))
    image = np.load(path)
    tensor = torch.from_numpy(image)[None, None]
    finer = tuple(n * 5 // 4 for n in image.shape)
    factors = [n / m for n, m in zip(finer, image.shape)]
    cos, sin = np.cos(np.pi / 9), np.sin(np.pi / 9)
    turn = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])

    def zoom(order):
        return seconds(lambda: ndimage.zoom(image, factors, order=order, mode="nearest"))

    def interpolate(**mode):
        return seconds(lambda: torch.nn.functional.interpolate(tensor, finer, **mode))

    def turned_by_torch():
        theta = torch.tensor([[cos, -sin, 0, 0], [sin, cos, 0, 0], [0, 0, 1, 0]], dtype=torch.float32)[None]
        grid = torch.nn.functional.affine_grid(theta, tensor.shape, align_corners=True)
        torch.nn.functional.grid_sample(tensor, grid, "bilinear", "border", align_corners=True)

    print(json.dumps({
        "nearest": min(zoom(0), interpolate(mode="nearest-exact")),
        "linear": min(zoom(1), interpolate(mode="trilinear", align_corners=True)),
        "cubic": zoom(3),
        "turned": min(seconds(turned_by_torch), seconds(lambda: ndimage.affine_transform(image, turn, order=1, mode="nearest"))),
    }))


main()
