"""CPU seconds of scikit-image and SciPy: postprocess_peer.py MASK.npy IMAGE.npy; with make SIZE...: writes both first."""
import json
import sys
import time

import numpy as np
from scipy import ndimage
from skimage import feature, measure, segmentation


def make(mask_path, image_path, size):
    """Nuclei: balls of radius 6 to 13 where they fall, some of which touch."""
    rng = np.random.default_rng(0)
    mask = np.zeros(size, np.uint8)
    for _ in range(int(mask.size / (900 if mask.ndim == 2 else 9000))):
        radius = rng.integers(6, 14)
        first = [rng.integers(0, side - 2 * radius) if side > 2 * radius else 0 for side in size]
        box = tuple(slice(f, f + 2 * radius + 1) for f in first)
        grid = np.ogrid[tuple(slice(-radius, -radius + n) for n in mask[box].shape)]
        mask[box] |= sum(g * g for g in grid) <= radius * radius
    np.save(mask_path, mask)
    np.save(image_path, rng.random(size, np.float32) * 1000)


def seconds(work, repeats):
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def split(mask):
    distance = ndimage.distance_transform_edt(mask)
    peaks = feature.peak_local_max(distance, min_distance=7, exclude_border=False)
    markers = np.zeros(mask.shape, bool)
    markers[tuple(peaks.T)] = True
    return segmentation.watershed(-distance, measure.label(markers, connectivity=1), mask=mask)


def main():
    mask_path, image_path, *rest = sys.argv[1:]
    if rest:
        return make(mask_path, image_path, tuple(map(int, rest[1:])))
    mask, image = np.load(mask_path), np.load(image_path)
    labels = measure.label(mask, connectivity=1)
    names = ["label", "area", "bbox", "centroid", "equivalent_diameter_area"]
    names += ["intensity_mean", "intensity_min", "intensity_max", "intensity_std"]
    names += ["perimeter", "eccentricity", "axis_major_length", "axis_minor_length"] if mask.ndim == 2 else []
    print(json.dumps({
        "components": min(seconds(lambda: ndimage.label(mask), 2), seconds(lambda: measure.label(mask, connectivity=1), 2)),
        "distance": seconds(lambda: ndimage.distance_transform_edt(mask), 1),
        "watershed": seconds(lambda: split(mask > 0), 1),
        "measure": seconds(lambda: measure.regionprops_table(labels, image, properties=names), 1),
    }))


main()
