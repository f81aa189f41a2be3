#!/usr/bin/env python3
"""Otsu + watershed of the distance (scikit-image), of membranes a local threshold + watershed of the intensity, on the
held-out side: average precision as AveragePrecision has it. Smoothing and distance are the best of the other side.

    experiments/instances/baseline.py IMAGE LABELS START...   START: where the held-out part begins along each axis
"""
import itertools
import sys

import numpy as np
from scipy import ndimage
from scipy.optimize import linear_sum_assignment
from skimage import feature, filters, io, segmentation


def objects(image, is_membrane, sigma, apart):
    smooth = filters.gaussian(image.astype(float), sigma)
    mask = smooth < filters.threshold_local(smooth, 51) if is_membrane else smooth > filters.threshold_otsu(smooth)
    distance = filters.gaussian(ndimage.distance_transform_edt(mask), 1)
    markers = np.zeros(mask.shape, int)
    for number, peak in enumerate(feature.peak_local_max(distance, min_distance=apart, exclude_border=False), 1):
        markers[tuple(peak)] = number
    return segmentation.watershed(smooth, markers) if is_membrane else segmentation.watershed(-distance, markers, mask=mask)


def precision(found, truth, threshold):
    found, truth = (np.unique(labels, return_inverse=True)[1].reshape(labels.shape) + (labels.min() > 0)
                    for labels in (found, truth))
    both = np.zeros((found.max() + 1, truth.max() + 1))
    np.add.at(both, (found, truth), 1)
    iou = (both / (both.sum(1, keepdims=True) + both.sum(0, keepdims=True) - both))[1:, 1:]
    rows, columns = linear_sum_assignment(-(iou >= threshold).astype(float) - iou / (2 * min(iou.shape)))
    hits = int((iou[rows, columns] >= threshold).sum())
    return hits / (sum(iou.shape) - hits)


def main():
    image, truth = io.imread(sys.argv[1]), io.imread(sys.argv[2])
    starts = [int(start) for start in sys.argv[3:]]

    def scores(part, sigma, apart):
        found = objects(image[part], "maize" in sys.argv[1], sigma, apart)
        return [precision(found, truth[part], t) for t in np.arange(0.5, 1, 0.05)]

    learnt = tuple(slice(0, start or None) for start in starts)
    best = max(itertools.product((0.5, 1, 2), (2, 4, 8)), key=lambda choice: np.mean(scores(learnt, *choice)))
    held_out = scores(tuple(slice(start, None) for start in starts), *best)
    print(f"sigma, apart: {best}\nap50: {held_out[0]:.3f}\nap: {np.mean(held_out):.3f}")


if __name__ == "__main__":
    main()
