#!/usr/bin/env python3
"""Writes stars_2d.safetensors and stars_3d.safetensors: what StarDist makes of the stars of 60 touching objects, on grids.

make_stars.py [FOLDER]: needs stardist, csbdeep, tensorflow and safetensors. Cases are as make_golden.py's. "prob" and "dist":
some of the targets; "out": labels by StarDist's _instances_from_prediction() of noisy(), longer distances, so that some overlap.
"""
import json
import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402
from stardist.geometry import star_dist, star_dist3D  # noqa: E402
from stardist.models import Config2D, Config3D, StarDist2D, StarDist3D  # noqa: E402
from stardist.rays3d import Rays_GoldenSpiral  # noqa: E402
from stardist.utils import edt_prob  # noqa: E402

ANISOTROPY = (2.0, 1.0, 1.0)


def objects(shape, pitch, radius, anisotropy):
    """Ellipsoids round the points of a lattice, moved at random, the later over the earlier."""
    random, labels, indices = np.random.RandomState(0), np.zeros(shape, np.uint8), np.indices(shape)
    places = np.stack(np.meshgrid(*(np.arange(p / 2, s, p) for s, p in zip(shape, pitch)), indexing="ij"), -1).reshape(-1, len(shape))
    for number, place in enumerate(places, 1):
        centre, size = place + random.uniform(-1.5, 1.5, len(shape)) / anisotropy, random.uniform(*radius)
        square = sum(((i - c) * a) ** 2 for i, c, a in zip(indices, centre, anisotropy))
        labels[square < size**2] = number
    return labels


def noisy(field, scale, phase):
    return (field + scale * np.sin(np.arange(field.size) * 0.7 + phase).reshape(field.shape)).astype(np.float32)


def case(labels, rays, grid, longer, prob_thresh, nms_thresh):
    """Options, tensors."""
    step = tuple(slice(None, None, g) for g in grid)
    if labels.ndim == 2:
        model = StarDist2D(Config2D(n_rays=rays, grid=grid), basedir=None)
        prob, dist = edt_prob(labels[step]), star_dist(labels, rays, grid=grid)  # as StarDistData2D
    else:
        spiral = Rays_GoldenSpiral(rays, ANISOTROPY)
        model = StarDist3D(Config3D(rays=spiral, grid=grid, anisotropy=ANISOTROPY), basedir=None)
        prob, dist = edt_prob(labels, anisotropy=ANISOTROPY)[step], star_dist3D(labels, spiral, grid=grid)
    dist = np.moveaxis(dist, -1, 0)
    logits = noisy(6 * prob - 3, 0.3, 1)
    probable = (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)
    field = np.maximum(noisy(longer * dist, 0.3, 0), 1e-3)
    out, _ = model._instances_from_prediction(labels.shape, probable, np.moveaxis(field, 0, -1), prob_thresh=prob_thresh, nms_thresh=nms_thresh)
    print(labels.shape, grid, longer, nms_thresh, labels.max(), "->", len(np.unique(out)) - 1)
    options = {"rays": rays, "grid": grid, "longer": longer, "prob_thresh": prob_thresh, "nms_thresh": nms_thresh}
    if labels.ndim == 3:
        options["anisotropy"] = ANISOTROPY
    some = {"prob": prob.reshape(1, -1)[:, ::61], "dist": dist.reshape(rays, -1)[:, ::61]}
    return options, {**{n: np.ascontiguousarray(v, np.float32) for n, v in some.items()}, "out": out.astype(np.uint8)}


def write(topic, labels, cases):
    tensors, listed = {"labels": labels}, []
    for name, *options in cases:
        chosen, made = case(labels, *options)
        tensors.update({f"{name}.{role}": value for role, value in made.items()})
        listed.append({"name": name, "options": chosen, "tensors": {"labels": "labels", **{role: f"{name}.{role}" for role in made}}})
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent
    save_file(tensors, folder / f"{topic}.safetensors", {"topic": topic, "cases": json.dumps(listed, separators=(",", ":"))})


if __name__ == "__main__":
    write("stars_2d", objects((104, 134), (14, 14), (6, 9), (1, 1)), [
        ("grid_2", 32, (2, 2), 1.0, 0.5, 0.4), ("grid_4_1", 16, (4, 1), 1.1, 0.4, 0.3), ("longer", 32, (1, 1), 1.3, 0.5, 0.3)])
    write("stars_3d", objects((18, 40, 50), (6, 10, 10), (4.5, 6), (2, 1, 1)), [("grid_2", 32, (1, 2, 2), 1.0, 0.4, 0.4)])
