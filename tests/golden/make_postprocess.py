#!/usr/bin/env python3
"""Writes components, distance, morphology, watershed, thresholds and
measure.safetensors: what scikit-image and SciPy make of small masks, labels and images.

    python tests/golden/make_postprocess.py [--output FOLDER]   (needs benchmarks/requirements.txt and scikit-image)

A case has the peer's options; its tensors are its inputs and "out". Those of watershed have "what", too: peaks, watershed
or recipe (distance, peaks, watershed).
"""
import argparse
import functools
from pathlib import Path

import numpy as np
import torch
from make_golden import Golden
from scipy import ndimage
from skimage import feature, filters, measure, segmentation

RNG = np.random.default_rng(15)


def blobs(*size, share=0.4, sigma=2.0):
    field = ndimage.gaussian_filter(RNG.standard_normal(size), sigma)
    return field > np.quantile(field, 1 - share)


def spiral(side):
    """One object that is long and winds round itself: a test of union-find."""
    image = np.zeros((side, side), bool)
    y, x, dy, dx, length = 1, 1, 0, 1, side - 3
    image[y, x] = True
    while length > 0:
        for _ in range(2):
            for _ in range(length):
                y, x = y + dy, x + dx
                image[y, x] = True
            dy, dx = dx, -dy
        length -= 2
    return image


def discs():
    y, x = np.mgrid[:48, :60]
    return sum(((y - cy) ** 2 + (x - cx) ** 2 < r * r) for cy, cx, r in
               ((16, 14, 9), (16, 28, 10), (30, 22, 8), (30, 50, 12), (5, 55, 4), (44, 4, 6), (46, 36, 1))) > 0


def masks():
    yield "empty", np.zeros((5, 7), bool)
    yield "pixel", np.pad(np.ones((1, 1), bool), ((2, 1), (3, 2)))
    yield "row", RNG.random((1, 40)) > 0.5
    yield "column", RNG.random((40, 1)) > 0.5
    yield "noise", RNG.random((21, 24)) > 0.5
    yield "sparse", RNG.random((18, 21)) > 0.05
    yield "blobs", blobs(32, 37)
    yield "spiral", spiral(31)
    yield "frame", np.pad(np.zeros((9, 14), bool), 2, constant_values=True)
    yield "discs", discs()
    yield "empty3", np.zeros((3, 4, 5), bool)
    yield "noise3", RNG.random((5, 8, 9)) > 0.6
    yield "sparse3", RNG.random((5, 6, 7)) > 0.03
    yield "blobs3", blobs(8, 13, 15, sigma=1.5)
    yield "shell3", np.pad(np.zeros((4, 5, 6), bool), 1, constant_values=True)
    yield "plane3", RNG.random((1, 15, 17)) > 0.5


def once(golden, key, array):
    return key if key in golden.tensors else golden.put(key, as_tensor(array))


def as_tensor(array):
    if array.dtype != np.float32 and array.dtype != np.float64:  # small whole numbers
        array = array.astype(np.uint8 if array.size == 0 or array.min() >= 0 and array.max() < 256 else np.int16)
    return torch.from_numpy(np.ascontiguousarray(array))


def components(golden, name, mask):
    for connectivity in range(1, mask.ndim + 1):
        out = measure.label(mask, connectivity=connectivity).astype(np.int32)
        structure = ndimage.generate_binary_structure(mask.ndim, connectivity)
        assert (out == ndimage.label(mask, structure)[0]).all()
        golden.add(f"components.{name}.{connectivity}", {"connectivity": connectivity},
                   {"image": once(golden, f"mask.{name}", mask), "out": as_tensor(out)})


def classes(golden):
    for name, size in (("classes", (33, 35)), ("classes3", (7, 9, 10))):
        image = RNG.integers(0, 4, size).astype(np.int32)
        golden.put(f"image.{name}", as_tensor(image.astype(np.uint8)))
        for connectivity in range(1, image.ndim + 1):
            out = measure.label(image, connectivity=connectivity).astype(np.int32)
            golden.add(f"components.{name}.{connectivity}", {"connectivity": connectivity},
                       {"image": f"image.{name}", "out": as_tensor(out)})


def distances(golden, name, mask):
    if mask.all():
        return
    for number, sampling in enumerate((None, (2.0, 0.5, 1.3)[:mask.ndim], 0.25)[: 3 if mask.size < 400 else 2 if mask.size < 2000 else 1]):
        out = ndimage.distance_transform_edt(mask, sampling).astype(np.float32)
        options = {} if sampling is None else {"sampling": sampling}
        golden.add(f"distance.{name}.{number}", options, {"image": once(golden, f"mask.{name}", mask), "out": as_tensor(out)})


def morphology(golden, name, mask):
    for radius, is_ball in ((1, True), (3, True), (1, False), (3, False)):
        grid = np.mgrid[tuple(slice(-radius, radius + 1) for _ in mask.shape)]
        footprint = (grid * grid).sum(0) <= radius * radius if is_ball else np.ones(grid.shape[1:], bool)
        dilate, erode = ndimage.binary_dilation, functools.partial(ndimage.binary_erosion, border_value=1)
        results = {"dilation": dilate(mask, footprint), "erosion": erode(mask, footprint)}
        results["opening"] = dilate(results["erosion"], footprint)
        results["closing"] = erode(results["dilation"], footprint)
        for operation, out in results.items():
            golden.add(f"{operation}.{name}.{radius}.{is_ball}",
                       {"operation": operation, "radius": radius, "footprint": "ball" if is_ball else "box"},
                       {"image": once(golden, f"mask.{name}", mask), "out": as_tensor(out)})


def peaks(golden, name, image, labels, more):
    for min_distance in (1, 2, 5):
        for threshold in (None, 0.4):
            for given in ((None, labels) if more else (None,)):
                options = {"min_distance": min_distance} | ({} if threshold is None else {"threshold_abs": threshold})
                found = feature.peak_local_max(image, exclude_border=False, labels=given, **options)
                out = np.ravel_multi_index(tuple(found.T), image.shape) if len(found) else np.zeros(0, np.int64)
                tensors = {"image": f"image.{name}", "out": as_tensor(out.astype(np.int32))}
                if given is not None:
                    tensors["labels"] = f"labels.{name}"
                golden.add(f"peaks.{name}.{min_distance}.{threshold}.{given is not None}", options, tensors, what="peaks")


def floods(golden, name, image, markers, mask):
    golden.put(f"markers.{name}", as_tensor(markers.astype(np.int32)))
    for connectivity in range(1, image.ndim + 1):
        for with_mask in (False, True):
            out = segmentation.watershed(image, markers, connectivity, mask=mask if with_mask else None)
            tensors = {"image": f"image.{name}", "markers": f"markers.{name}", "out": as_tensor(out.astype(np.int32))}
            if with_mask:
                tensors["mask"] = f"labels.{name}"
            golden.add(f"watershed.{name}.{connectivity}.{with_mask}", {"connectivity": connectivity}, tensors,
                       what="watershed")


def split(golden):
    for name, image, mask in (
        ("smooth", ndimage.gaussian_filter(RNG.random((20, 23)), 2).astype(np.float32) * 4, blobs(20, 23, share=0.7)),
        ("ties", RNG.integers(0, 4, (18, 21)).astype(np.float32), blobs(18, 21, share=0.8)),
        ("negative", -RNG.integers(0, 9, (15, 16)).astype(np.float32), blobs(15, 16, share=0.8)),
        ("smooth3", ndimage.gaussian_filter(RNG.random((6, 8, 9)), 1).astype(np.float32), blobs(6, 8, 9, share=0.7)),
        ("ties3", RNG.integers(0, 3, (5, 7, 8)).astype(np.float32), blobs(5, 7, 8, share=0.8)),
    ):
        labels = measure.label(mask, connectivity=1).astype(np.int32)
        golden.put(f"image.{name}", as_tensor(image))
        golden.put(f"labels.{name}", as_tensor(labels))
        peaks(golden, name, image, labels, more=True)
        markers = np.where(RNG.random(image.shape) > 0.95, RNG.integers(1, 9, image.shape), 0)
        floods(golden, name, image, markers, mask)


def recipe(golden, name, mask):
    for min_distance in (2, 5):
        distance = ndimage.distance_transform_edt(mask)
        labels = measure.label(mask, connectivity=1)
        found = feature.peak_local_max(distance, min_distance=min_distance, exclude_border=False, labels=labels)
        markers = np.zeros(mask.shape, bool)
        markers[tuple(found.T)] = True
        out = segmentation.watershed(-distance, measure.label(markers, connectivity=1), mask=mask)
        golden.add(f"recipe.{name}.{min_distance}", {"min_distance": min_distance},
                   {"image": once(golden, f"mask.{name}", mask), "out": as_tensor(out.astype(np.int32))}, what="recipe")


def thresholds(golden):
    y, x = np.mgrid[:28, :36]
    two = np.where((y - 14) ** 2 + (x - 18) ** 2 < 60, 0.7, 0.2) + RNG.standard_normal((28, 36)) * 0.06
    images = {
        "two": two,
        "skewed": RNG.exponential(2.0, (20, 21)),
        "bright": 100 - RNG.exponential(5.0, (20, 21)),
        "below": two * 50 - 40,
        "probability": 1 / (1 + np.exp(-(two - 0.45) * 40)),
        "three3": RNG.choice([0.1, 0.5, 0.9], (4, 8, 10)) + RNG.standard_normal((4, 8, 10)) * 0.03,
        "flat": np.full((6, 7), 0.25),
        "few": RNG.choice([0.0, 1.0], (12, 13)),
    }
    for name, image in images.items():
        image = image.astype(np.float32)
        golden.put(f"image.{name}", as_tensor(image))
        for method in ("otsu", "triangle", "li", "yen", "isodata", "mean", "minimum"):
            try:
                with np.errstate(all="ignore"):
                    out = float(getattr(filters, f"threshold_{method}")(image))
            except (RuntimeError, IndexError):
                out = None
            if out is None or not np.isfinite(out):
                golden.add(f"threshold.{name}.{method}", {"method": method}, {"image": f"image.{name}"}, what="none")
            else:
                golden.add(f"threshold.{name}.{method}", {"method": method},
                           {"image": f"image.{name}", "out": torch.tensor([out], dtype=torch.float64)}, what="value")


def measured(golden):
    common = ("label", "area", "bbox", "centroid", "equivalent_diameter_area")
    plane = ("perimeter", "eccentricity", "axis_major_length", "axis_minor_length")
    of_image = ("intensity_mean", "intensity_min", "intensity_max", "intensity_std")
    for name, labels in (
        ("discs", measure.label(discs())),
        ("blobs", measure.label(blobs(32, 37)) * 3),
        ("full", np.ones((8, 9), int)),
        ("apart", RNG.integers(0, 4, (14, 15))),
        ("cells3", measure.label(blobs(7, 9, 12, sigma=1.5))),
    ):
        image = RNG.random((*labels.shape, 2)).astype(np.float32) * 100
        names = (*common, *(plane if labels.ndim == 2 else ()), *of_image)
        table = measure.regionprops_table(labels, image, properties=names)
        golden.add(f"measure.{name}", {}, {
            "labels": as_tensor(labels.astype(np.int32)),
            "image": as_tensor(np.moveaxis(image, -1, 0)),
            **{f"out.{key}": torch.as_tensor(np.asarray(value, np.float64)) for key, value in table.items()},
        }, columns=list(table))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    files = {topic: Golden(topic) for topic in ("components", "distance", "morphology", "watershed", "thresholds", "measure")}
    for name, mask in masks():
        components(files["components"], name, mask)
        distances(files["distance"], name, mask)
        if name in ("blobs", "blobs3", "sparse", "frame", "shell3", "plane3", "empty"):
            morphology(files["morphology"], name, mask)
        if name in ("blobs", "discs", "blobs3", "noise"):
            recipe(files["watershed"], name, mask)
    classes(files["components"])
    split(files["watershed"])
    thresholds(files["thresholds"])
    measured(files["measure"])
    for golden in files.values():
        golden.save(args.output)


if __name__ == "__main__":
    main()
