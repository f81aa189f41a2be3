#!/usr/bin/env python3
"""Writes instances.safetensors: what Cellpose's dynamics and StarDist's geometry and NMS make of small label images.

    python tests/golden/make_instances.py CELLPOSE STARDIST [--output FOLDER]

CELLPOSE and STARDIST are folders to import cellpose 4 and stardist 0.9 from; what these import and these functions do not
use is replaced by empty modules. Cases have "what": flows and stars (targets of labels), flow_labels and star_labels (labels
of fields that noisy() makes of the targets).
"""
import argparse
import importlib
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import torch
from make_golden import Golden
from scipy import ndimage


def renumber(labels, in_place=True):
    """fastremap's: by first place, 0 stays."""
    values, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.where(values == 0, -1, first))
    numbers = np.empty(len(values), labels.dtype)
    numbers[order] = np.arange(len(values)) + (0 if (values == 0).any() else 1)
    labels[...] = numbers[inverse].reshape(labels.shape)
    return labels, {}


def mask(labels, values, in_place=True):
    labels[np.isin(labels, values)] = 0
    return labels


def peers(cellpose, stardist):
    sys.path[:0] = [cellpose, stardist]
    for name in ("csbdeep", "csbdeep.utils", "csbdeep.utils.six", "csbdeep.utils.tf", "csbdeep.models", "csbdeep.data",
                 "csbdeep.internals", "csbdeep.internals.predict", "csbdeep.io", "csbdeep.models.pretrained", "numba",
                 "torchvision", "torchvision.transforms", "fastremap", "fill_voids", "cv2", "tifffile", "segment_anything"):
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = MagicMock()
    sys.modules["fastremap"] = types.SimpleNamespace(renumber=renumber, mask=mask, unique=np.unique)
    sys.modules["fill_voids"] = types.SimpleNamespace(fill=ndimage.binary_fill_holes)


def discs(shape, centres):
    """Touching discs or balls, cut by the sides, the later over the earlier."""
    grid = np.indices(shape)
    labels = np.zeros(shape, np.int32)
    for number, (*centre, radius) in enumerate(centres, 1):
        labels[sum((g - c) ** 2 for g, c in zip(grid, centre)) < radius**2] = number
    return labels


def label_images():
    yield "discs", discs((40, 46), [(8, 9, 7), (9, 21, 6), (26, 12, 9), (30, 30, 8), (36, 44, 7), (12, 38, 8)])
    ring = discs((24, 26), [(11, 12, 9)])
    ring[discs((24, 26), [(11, 14, 6)]) > 0] = 0
    ring[9:14, 12:16] = 2
    yield "ring", ring
    yield "one", np.ones((9, 12), np.int32)
    yield "balls", discs((11, 20, 23), [(4, 6, 6, 5), (5, 7, 15, 4.8), (5, 15, 9, 5), (7, 16, 20, 4.2)])


def some(field):
    """(C,...) at every 61st voxel: enough to tell."""
    return torch.tensor(field.reshape(field.shape[0], -1)[:, ::61]).float()


def byte(labels):
    return torch.tensor(labels.astype(np.uint8))


def noisy(field, scale, phase):
    """The field with what a network might add: the test does the same."""
    wave = np.sin(np.arange(field.size) * 0.7 + phase).reshape(field.shape)
    return (field + scale * wave).astype(np.float32)


def flow_cases(g):
    from cellpose import dynamics
    for name, labels in label_images():
        three = labels.ndim == 3
        flows = dynamics.masks_to_flows_gpu_3d(labels) if three else dynamics.masks_to_flows_gpu(labels)[0]
        g.put(name, byte(labels))
        g.add(f"flows_{name}", {}, {"labels": name, "out": some(flows)}, what="flows")
        for scale, options in ((0.1, {}), (0.5, {"niter": 60, "min_size": 40, "flow_threshold": 0.2}),
                               (1.5, {"cellprob_threshold": 0.5}), (3.0, {"max_size_fraction": 0.1})):
            probability = noisy(np.where(labels > 0, 2.0, -2.0), scale, 1)
            found = dynamics.resize_and_compute_masks(noisy(5 * flows, scale, 0), probability, do_3D=three,
                                                      **{"min_size": 15, **options})
            g.add(f"flow_labels_{name}_{scale}_{len(options)}", {**options, "scale": scale},
                  {"labels": name, "out": byte(found)}, what="flow_labels")


def star_cases(g):
    from stardist import nms, rays3d
    from stardist.geometry import dist_to_coord, geom3d, polygons_to_label, star_dist, star_dist3D
    from stardist.utils import _edt_prob_scipy
    for name, labels in label_images():
        three = labels.ndim == 3
        for count, anisotropy in ((12, None), (24, (2.0, 1, 1))) if three else ((8, None), (32, None)):
            rays = rays3d.Rays_GoldenSpiral(count, anisotropy) if three else None
            distances = star_dist3D(labels, rays) if three else star_dist(labels, count)
            probability = _edt_prob_scipy(labels, anisotropy)
            options = {"rays": count, **({"anisotropy": anisotropy} if anisotropy else {})}
            if count != 32:
                g.add(f"stars_{name}_{count}", options,
                      {"labels": name, "out": some(np.moveaxis(distances, -1, 0)),
                       "probability": some(probability[None])}, what="stars")
            if name == "ring" and count == 8:  # far from convex: what is hidden under others decides, which we leave out
                continue
            for scale, thresholds in ((0.05, {}), (0.3, {"prob_thresh": 0.6, "nms_thresh": 0.2})):
                logits = noisy(6 * probability - 3, 0.5 * scale, 1)
                probable = (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)
                field = np.moveaxis(noisy(np.moveaxis(distances, -1, 0), scale, 0), 0, -1).clip(1e-3)
                used = {"prob_thresh": 0.5, "nms_thresh": 0.4, **thresholds}
                if three:
                    points, p, d = nms.non_maximum_suppression_3d(field, probable, rays, **used)
                    found = geom3d.polyhedron_to_label(d, points, rays, labels.shape, p, verbose=False)
                else:
                    points, p, d = nms.non_maximum_suppression(field, probable, **used)
                    found = polygons_to_label(d, points, labels.shape, p)
                g.add(f"star_labels_{name}_{count}_{scale}", {**options, **thresholds, "scale": scale},
                      {"labels": name, "out": byte(found)}, what="star_labels")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cellpose")
    parser.add_argument("stardist")
    parser.add_argument("--output", default=Path(__file__).parent, type=Path)
    args = parser.parse_args()
    peers(args.cellpose, args.stardist)
    g = Golden("instances")
    flow_cases(g)
    star_cases(g)
    g.save(args.output)


if __name__ == "__main__":
    main()
