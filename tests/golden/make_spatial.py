#!/usr/bin/env python3
"""Writes spatial.safetensors: what MONAI's spatial dictionary transforms make of small images.

    python tests/golden/make_spatial.py [--output FOLDER]      (needs benchmarks/requirements.txt)

Every case has "transform" (MONAI's class), "options" and the tensors that go in and come out, by key. Random transforms
have ranges of one point, and random crops one voxel to choose. Two more kinds: "grid" (functions of
src/data/transforms/spatial/deform.h, with the random offsets as inputs), and those with "affine" and "affine_out": of the first
key before and after, three rows of four, whose columns are the axes of the tensor.
"""
import argparse
import warnings
from pathlib import Path

import make_golden
import monai.transforms as mt
import numpy as np
import torch
from make_golden import Golden
from monai.data import MetaTensor
from monai.networks.layers import GaussianFilter
from monai.transforms.utils import create_control_grid, create_grid, create_rotate

make_golden.MAX_BYTES = 850_000
IMAGE = {2: "image_2d", 3: "image_3d"}
LABEL = {2: "label_2d", 3: "label_3d"}
MODES = ["bilinear", "nearest"]


def plain(value):
    return value.as_tensor() if isinstance(value, MetaTensor) else torch.as_tensor(value)


def oblique():
    """A rotation with a mirror, and where it puts the first voxel."""
    matrix = create_rotate(3, [0.4, -0.3, 0.7]) @ np.diag([1.0, -1.0, 1.0, 1.0])
    matrix[:3, 3] = [10.0, -20.0, 5.5]
    return matrix


def distance_from_ties(transform, options, key, shape, affine):
    """How close the points that `key` is sampled at come to the middle between two voxels: what an image of voxels'
    positions becomes tells where they are."""
    which = options["keys"].index(key)
    for option in ("mode", "align_corners", "padding_mode"):
        if isinstance(options.get(option), list):
            options = {**options, option: options[option][which]}
    if options.get("mode") != "nearest" or transform in ("Resized", "Zoomd", "RandZoomd"):  # whole numbers decide there
        return 0.5
    places = torch.stack(torch.meshgrid(*[torch.arange(n, dtype=torch.float64) for n in shape], indexing="ij"))
    options = {**options, "keys": [key], "mode": "bilinear", "padding_mode": "border"}
    points = getattr(mt, transform)(**options)({key: MetaTensor(places, affine=affine)})[key]
    return float((plain(points) % 1 - 0.5).abs().min())


def numbers(affine):
    """One text: the tests' reader of YAML counts values."""
    return " ".join(repr(float(value)) for value in affine[:3].flatten())


class Cases:
    def __init__(self):
        self.g = Golden("spatial")
        self.count = {}
        self.g.put("image_2d", torch.rand(2, 13, 11))
        self.g.put("image_3d", torch.rand(1, 7, 9, 8))
        self.g.put("label_2d", torch.randint(0, 4, (1, 13, 11)).float())
        self.g.put("label_3d", torch.randint(0, 4, (1, 7, 9, 8)).float())

    def name(self, transform):
        self.count[transform] = self.count.get(transform, 0) + 1
        return f"{transform}_{self.count[transform]}"

    def add(self, transform, options, inputs, spacing=(0.8, 1.2, 2.5), affine=None, **more):
        """inputs: key -> name of a tensor. spacing: of the axes, in mm."""
        keys = options.get("keys", list(inputs))
        data = {k: MetaTensor(self.g.tensors[t].clone()) for k, t in inputs.items()}
        if affine is None:
            # MONAI takes the spacing of a plane from the affine's first two rows.
            axes = np.eye(4) if transform == "Spacingd" and len(spacing) == 2 else oblique()
            affine = axes @ np.diag([*spacing, *[1.0] * (4 - len(spacing))])
        affine = affine.round(6)
        data = {k: MetaTensor(v.as_tensor(), affine=affine) for k, v in data.items()}
        # Cytra's codes are for (x,y,z), MONAI's for the tensor's axes, here (z,y,x).
        given = {k: torch.tensor(v) if k == "affine" else v[::-1] if k == "axcodes" else v for k, v in options.items()}
        result = getattr(mt, transform)(**{"keys": keys, **given})(data)
        for key in keys:
            if isinstance(options.get("mode"), list) or options.get("mode") == "nearest":
                apart = distance_from_ties(transform, {"keys": keys, **given}, key, data[key].shape[1:], affine)
                if apart < 2e-5:  # ten times what float32 leaves uncertain of them
                    raise SystemExit(f"{transform} {options}: a point of {key} is {apart} from a tie, change the case")
        result = result[0] if isinstance(result, list) else result
        keys = [keys] if isinstance(keys, str) else keys
        # What bends the image has no affine: MONAI, too, leaves the image's there.
        if "Elastic" not in transform and "Distortion" not in transform:
            moved = np.asarray(result[keys[0]].affine)
            more["affine"] = numbers(affine)
            if np.linalg.det(moved):  # with align_corners MONAI's has no extent along an axis of one voxel
                more["affine_out"] = numbers(moved.round(7))
        tensors = dict(inputs) | {f"{k}.out": plain(result[k]).float() for k in keys}
        self.g.add(self.name(transform), {"keys": keys, **options}, tensors, transform=transform, **more)

    def image(self, transform, options, dims=(2, 3), **more):
        for d in dims:
            self.add(transform, options(d) if callable(options) else options, {"image": IMAGE[d]}, **more)

    def both(self, transform, options, dims=(2, 3), **more):
        """Image and label in one call, a mode for each."""
        for d in dims:
            given = {"mode": MODES, **(options(d) if callable(options) else options)}
            self.add(transform, given, {"image": IMAGE[d], "label": LABEL[d]}, **more)


def by(two, three):
    return lambda d: two if d == 2 else three


def pad_and_crop(c):
    c.image("EnsureChannelFirstd", {"channel_dim": 0})
    for options in (by({"spatial_size": [16, 11]}, {"spatial_size": [8, -1, 11]}), {"spatial_size": 14}):
        c.image("SpatialPadd", options)
    c.image("SpatialPadd", by({"spatial_size": [20, 3]}, {"spatial_size": [9, 12, 9]}))
    c.image("SpatialPadd", {"spatial_size": 12, "method": "end", "value": 2.5})
    for mode in ("edge", "reflect", "wrap", "symmetric", "replicate", "circular"):
        c.image("SpatialPadd", {"spatial_size": 14 if mode in ("edge", "wrap") else 12, "mode": mode})
    c.add("SpatialPadd", {"spatial_size": [15, 14], "mode": ["reflect", "constant"]},
          {"image": "image_2d", "label": "label_2d"})
    c.image("BorderPadd", {"spatial_border": 2})
    c.image("BorderPadd", by({"spatial_border": [1, 3]}, {"spatial_border": [0, 2, 1]}))
    c.image("BorderPadd", by({"spatial_border": [1, 0, 3, 2], "mode": "edge"},
                             {"spatial_border": [1, 2, 0, 0, 3, 1], "constant_values": -1.0}))
    c.image("DivisiblePadd", {"k": 8})
    c.image("DivisiblePadd", by({"k": [4, 0], "method": "end"}, {"k": [5, 3, -1], "mode": "reflect"}))
    c.image("CenterSpatialCropd", by({"roi_size": [5, 6]}, {"roi_size": [4, 3, 5]}))
    c.image("CenterSpatialCropd", by({"roi_size": [12, -1]}, {"roi_size": [20, 8, 0]}))
    c.image("CenterSpatialCropd", {"roi_size": 4})
    c.image("SpatialCropd", by({"roi_start": [2, 1], "roi_end": [9, 20]}, {"roi_start": [1, 0, 3], "roi_end": [6, 9, 7]}))
    for crop in ("RandSpatialCropd", "RandSpatialCropSamplesd"):
        more = {"num_samples": 1} if "Samples" in crop else {}
        c.image(crop, lambda d, m=more: {"roi_size": [4, 3, -1][:d], "random_center": False, "random_size": False, **m})
    c.image("CenterScaleCropd", {"roi_scale": 0.5})
    c.image("CenterScaleCropd", by({"roi_scale": [0.3, 1.0]}, {"roi_scale": [0.9, 0.45, 0.01]}))
    c.image("ResizeWithPadOrCropd", by({"spatial_size": [10, 16]}, {"spatial_size": [10, 5, 8]}))
    c.image("ResizeWithPadOrCropd", by({"spatial_size": [7, -1], "method": "end"},
                                       {"spatial_size": 9, "mode": "edge", "method": "end"}))
    box_2d, box_3d = torch.zeros(2, 13, 11), torch.full((1, 7, 9, 8), -1.0)
    box_2d[0, 4:9, 7:10], box_2d[1, 3, 2] = 1, 0.5
    box_3d[0, 2:5, 0:4, 6] = 0.1
    c.g.put("box_2d", box_2d)
    c.g.put("box_3d", box_3d)
    for options in ({}, {"margin": 2}, {"margin": 5}, {"margin": 5, "allow_smaller": True}, {"k_divisible": 4},
                    {"margin": 3, "k_divisible": 5, "mode": "edge"}):
        for d in (2, 3):
            more = dict(options)
            if "margin" in more and d == 3 and more["margin"] == 3:
                more["margin"] = [1, 0, 2]
            if d == 2 and more.get("margin") == 2:
                more["channel_indices"] = [0]
            c.add("CropForegroundd", {"keys": ["image", "box"], "source_key": "box", **more},
                  {"image": IMAGE[d], "box": f"box_{d}d"})


def chosen_crops(c):
    """One voxel to choose: the crop is known. The places: inside, at corners, at borders."""
    for d, places in ((2, [(6, 5), (0, 0), (12, 10), (12, 2)]), (3, [(3, 4, 4), (0, 0, 0), (6, 8, 7), (0, 8, 3)])):
        shape = c.g.tensors[IMAGE[d]].shape[1:]
        sizes = [[4, 5], [13, 11], [20, 6]] if d == 2 else [[4, 3, 5], [7, 2, 8], [10, 5, 4]]
        for i, place in enumerate(places):
            one = torch.zeros(1, *shape)
            one[(0, *place)] = 1
            c.g.put(f"one_{d}d_{i}", one)
            for size in sizes:
                options = {"spatial_size": size, "label_key": "label", "allow_smaller": size[0] >= 10 and size[0] != 13}
                inputs = {"image": IMAGE[d], "label": f"one_{d}d_{i}"}
                c.add("RandCropByPosNegLabeld", {"keys": ["image", "label"], "pos": 2, "neg": 0, **options}, inputs)
                if i % 2 == 0:
                    more = {"num_classes": 2, "ratios": [0, 3]}
                    c.add("RandCropByLabelClassesd", {"keys": ["image", "label"], **more, **options}, inputs)
        below = c.g.put(f"below_{d}d", c.g.tensors[f"one_{d}d_0"] - 1)  # weights below 0: the least counts as 0
        for weights, size in ((f"one_{d}d_0", sizes[0]), (below, sizes[0]), (f"one_{d}d_0", [20, 4, 3][:d])):
            c.add("RandWeightedCropd", {"keys": ["image"], "w_key": "w", "spatial_size": size},
                  {"image": IMAGE[d], "w": weights})
        # A background of one voxel: where the image is above the threshold.
        image = c.g.tensors[IMAGE[d]]
        best = float(image.max())
        label = c.g.put(f"zeros_{d}d", torch.zeros(1, *shape))
        c.add("RandCropByPosNegLabeld",
              {"keys": ["image"], "label_key": "label", "spatial_size": sizes[0], "image_key": "image",
               "image_threshold": best - 1e-6}, {"image": IMAGE[d], "label": label})
        hot = torch.zeros(3, *shape)
        hot[0] = 1
        hot[(2, *places[0])] = 1
        c.add("RandCropByPosNegLabeld",
              {"keys": ["image"], "label_key": "label", "spatial_size": sizes[0], "neg": 0},
              {"image": IMAGE[d], "label": c.g.put(f"hot_{d}d", hot)})
        c.add("RandCropByLabelClassesd",
              {"keys": ["image"], "label_key": "label", "spatial_size": [*sizes[0][:-1], -1], "ratios": [0, 1, 1]},
              {"image": IMAGE[d], "label": f"hot_{d}d"})


def mirrors(c):
    for options in ({}, {"spatial_axis": 0}, {"spatial_axis": [-1, 0]}):
        c.image("Flipd", options)
        c.image("RandFlipd", {**options, "prob": 1.0})
    for options in ({}, {"k": 2, "spatial_axes": [1, 0]}, {"k": 3, "spatial_axes": [0, -1]}, {"k": -1}):
        c.image("Rotate90d", options)
    for axes in ([0, 1], [-1, 0]):
        c.image("RandRotate90d", {"prob": 1.0, "max_k": 1, "spatial_axes": axes})
    c.image("Rotate90d", {"k": 5, "spatial_axes": [1, 2]}, dims=(3,))


def resizing(c):
    for mode in ("area", "nearest", "nearest-exact", "bilinear", "trilinear"):
        c.image("Resized", by({"spatial_size": [8, 17], "mode": mode}, {"spatial_size": [5, 11, 9], "mode": mode}))
    c.image("Resized", by({"spatial_size": [20, -1], "mode": "bilinear", "align_corners": True},
                          {"spatial_size": [3, 1, 14], "mode": "trilinear", "align_corners": True}))
    for size in (6, 19):
        c.image("Resized", {"spatial_size": size, "size_mode": "longest", "mode": "bilinear"})
    c.both("Resized", by({"spatial_size": [5, 7]}, {"spatial_size": [9, 4, 4]}))
    c.add("Resized", {"spatial_size": [13, 11]}, {"image": "image_2d"})
    c.image("Resized", by({"spatial_size": [4, 20], "anti_aliasing": True, "mode": "bilinear"},
                          {"spatial_size": [3, 4, 5], "anti_aliasing": True, "mode": "area"}))
    c.add("Resized", {"spatial_size": [5, 6], "anti_aliasing": [True, False], "anti_aliasing_sigma": [1.5, None],
                      "mode": MODES}, {"image": "image_2d", "label": "label_2d"})
    for options in ({"zoom": 1.3}, {"zoom": 0.6}, {"zoom": 1.3, "mode": "bilinear", "padding_mode": "constant"},
                    {"zoom": 0.7, "keep_size": False, "mode": "nearest"}, {"zoom": 1.0, "mode": "bilinear"}):
        c.image("Zoomd", options)
    c.image("Zoomd", by({"zoom": [0.5, 1.5], "mode": "bilinear", "align_corners": True},
                        {"zoom": [1.5, 0.5, 1.2], "mode": "trilinear", "padding_mode": "reflect"}))
    c.both("Zoomd", {"zoom": 1.4})
    c.both("RandZoomd", {"prob": 1.0, "min_zoom": 0.8, "max_zoom": 0.8})
    c.image("RandZoomd", {"prob": 1.0, "min_zoom": [1.4, 0.7], "max_zoom": [1.4, 0.7], "keep_size": False})


def rotations(c):
    angle = by(0.4, [0.3, -0.5, 0.8])
    for options in ({}, {"keep_size": False}, {"padding_mode": "zeros", "align_corners": True},
                    {"padding_mode": "reflection", "keep_size": False}):
        c.both("Rotated", lambda d, o=options: {"angle": angle(d), **o})
    c.image("Rotated", by({"angle": np.pi / 2}, {"angle": [0, np.pi, 0]}))
    c.image("Rotated", {"angle": [1.1, 0.2, -0.3], "rotate_order": "zxy"}, dims=(3,))
    c.image("Rotated", {"angle": [1.1, 0.2, -0.3], "rotate_order": "ZYX", "keep_size": False}, dims=(3,))
    c.both("Rotated", {"angle": -0.7, "align_corners": [True, False], "padding_mode": ["zeros", "border"]}, dims=(2,))
    c.both("RandRotated", {"prob": 1.0, "range_x": [0.25, 0.25], "range_y": [0.5, 0.5], "range_z": [-0.9, -0.9]})
    c.image("RandRotated", {"prob": 1.0, "range_x": [0.25, 0.25], "keep_size": False, "padding_mode": "zeros"})


def affines(c):
    full = by({"rotate_params": 0.3, "shear_params": [0.1, -0.2], "translate_params": [1.5, -2.0],
               "scale_params": [0.8, 1.3]},
              {"rotate_params": [0.3, 0.2, -0.4], "shear_params": [0.1, -0.2, 0.05, 0.3, 0, 0.15],
               "translate_params": [1, 0.5, -2], "scale_params": [0.9, 1.2, 1.1]})
    for options in ({}, {"padding_mode": "zeros"}, {"padding_mode": "border", "align_corners": True}):
        c.both("Affined", lambda d, o=options: {**full(d), **o})
    c.image("Affined", lambda d: {**full(d), "spatial_size": [9, 16, 5][:d]})
    c.image("Affined", lambda d: {**full(d), "spatial_size": [-1, 6, 12][:d], "align_corners": True})
    c.image("Affined", {"translate_params": [2.0]})
    c.image("Affined", {"scale_params": [1.5, 1.5]})
    c.image("Affined", {"shear_params": [0.3]})
    c.image("Affined", {"rotate_params": [0.5, 0.3], "rotate_order": "zyx"}, dims=(3,))
    c.image("Affined", by({"affine": [[0.9, 0.2, 1.0], [-0.1, 1.1, 0.5], [0, 0, 1]]},
                          {"affine": [[0.9, 0.2, 0, 1.0], [-0.1, 1.1, 0.3, 0.5], [0, 0.1, 0.8, 0], [0, 0, 0, 1]]}))
    point = by({"rotate_range": [[0.3, 0.3]], "shear_range": [[0.2, 0.2], [-0.1, -0.1]],
                "translate_range": [[1.25, 1.25], [-3, -3]], "scale_range": [[0.2, 0.2], [-0.3, -0.3]]},
               {"rotate_range": [[0.3, 0.3], [0.1, 0.1], [-0.2, -0.2]], "shear_range": [[0.2, 0.2], [-0.1, -0.1]],
                "translate_range": [[1.25, 1.25], [-2, -2], [0.5, 0.5]], "scale_range": [[0.2, 0.2]] * 3})
    for options in ({}, {"padding_mode": ["border", "zeros"], "spatial_size": [11, 12, 6]}):
        c.both("RandAffined", lambda d, o=options: {**point(d), "prob": 1.0, **{k: v[:d] if k == "spatial_size" else v
                                                                             for k, v in o.items()}})
    c.image("RandAffined", lambda d: {"prob": 0.0, "spatial_size": [5, 12, 10][:d]})
    c.image("RandAffined", {"prob": 1.0})


def deformations(c):
    for spacing in ([4, 4], [3, 5], [2.5, 30]):
        options = {"spacing": spacing, "magnitude_range": [0, 0], "prob": 1.0}
        c.both("Rand2DElasticd", options, dims=(2,))
    affine = {"rotate_range": [[0.3, 0.3]], "translate_range": [[1, 1], [2, 2]], "scale_range": [[0.1, 0.1]]}
    c.both("Rand2DElasticd", {"spacing": 4, "magnitude_range": [0, 0], "prob": 1.0, "padding_mode": "zeros", **affine},
           dims=(2,))
    for prob in (0.0, 1.0):
        options = {"spacing": [4, 3], "magnitude_range": [0, 0], "prob": prob, "spatial_size": [8, 16]}
        c.image("Rand2DElasticd", options, dims=(2,))
    for more in ({}, affine, {"spatial_size": [5, 11, 10], "padding_mode": "border"}):
        options = {"sigma_range": [1, 1], "magnitude_range": [0, 0], "prob": 1.0, **more}
        c.both("Rand3DElasticd", options, dims=(3,))
    for steps in ([1.13, 0.83, 1.21, 0.89], [0.71, 1.31, 1.03, 1.52]):
        c.both("GridDistortiond", lambda d, s=steps: {"num_cells": 3, "distort_steps": [s, s[::-1], s][:d]})
    c.image("GridDistortiond", {"num_cells": [4, 2], "distort_steps": [[1.1, 1, 0.9, 1.2, 0.8], [1.3, 0.6, 1]],
                                "padding_mode": "zeros"}, (2,))
    c.both("RandGridDistortiond", {"num_cells": 3, "prob": 1.0, "distort_limit": [0.1, 0.1]})
    # The grids from given offsets, as the random transforms make them.
    for size, spacing in (([13, 11], [4, 4]), ([12, 9], [3.3, 5]), ([7, 20], [2, 6])):
        grid = create_control_grid(size, spacing, backend="torch")
        offset = torch.randn(2, *grid.shape[1:])
        matrix = mt.AffineGrid(rotate_params=[0.2], translate_params=[1, -1])
        grid[:2] += offset
        moved, affine = matrix(grid=grid)
        fine = torch.nn.functional.interpolate(recompute_scale_factor=True, input=moved.unsqueeze(0),
                                               scale_factor=spacing, mode="bicubic", align_corners=False)
        out = mt.CenterSpatialCrop(roi_size=size)(fine[0])
        c.g.add(c.name("deform_2d"), {"size": size, "spacing": spacing},
                {"offset": offset, "affine": affine.float(), "out": plain(out)}, grid="deform_2d")
    for sigma, magnitude in ((1.0, 2.0), (0.3, 1.5), (2.7, 8.0)):
        offset = torch.rand(3, 7, 9, 8) * 2 - 1
        grid = create_grid([7, 9, 8], backend="torch")
        grid[:3] += GaussianFilter(3, sigma, 3.0)(offset.unsqueeze(0))[0] * magnitude
        out, affine = mt.AffineGrid(rotate_params=[0.2, 0.1, 0.3])(grid=grid)
        c.g.add(c.name("deform_3d"), {"sigma": sigma, "magnitude": magnitude},
                {"offset": offset, "affine": affine.float(), "out": plain(out)}, grid="deform_3d")


def spacings(c):
    for options, two, three in (
        ({"pixdim": 1.43}, [1.0, 2.0], [2.0, 1.0, 1.2]),
        ({"pixdim": [0.83, -1]}, [1.0, 2.0], [2.0, 1.0, 1.2]),
        ({"pixdim": [1.07, 1.83], "align_corners": True}, [1.7, 1.1], [2.5, 1.0, 1.5]),
        ({"pixdim": [1.0, 1.0, 1.0]}, [1.0, 1.0], [1.0, 1.0, 1.0]),
        ({"pixdim": [1.0004, 1.31], "padding_mode": "zeros"}, [1.0, 1.0], [1.0, 1.0, 1.0]),
        ({"pixdim": 3.3, "padding_mode": "reflection"}, [1.0, 1.0], [2.0, 1.0, 1.0]),
    ):
        axes = np.diag([*three, 1.0])  # without rounding in a rotation: another branch in MONAI
        c.both("Spacingd", lambda d, o=options: o, dims=(2,), spacing=two)
        c.image("Spacingd", lambda d, o=options: o, dims=(3,), affine=axes)
        c.both("Spacingd", lambda d, o=options: o, dims=(3,), spacing=three)
    c.add("Spacingd", {"pixdim": 0.93, "mode": MODES, "align_corners": [True, False]},
          {"image": "image_2d", "label": "label_2d"}, spacing=[1.0, 1.3])


def orientations(c):
    for angles in ([0.2, 0.1, -0.3], [1.5, 0.2, 3.0], [0.3, 1.4, -1.7], [-1.2, 2.9, 0.6], [0.75, 0.8, 0.7]):
        for codes in ("RAS", "LPI", "SAR", "PIR"):
            affine = create_rotate(3, angles) @ np.diag([1.0, 2.0, -0.5, 1.0])
            affine[0, 1] += 0.3
            affine[:3, 3] = [4.0, -3.0, 100.0]
            c.add("Orientationd", {"axcodes": codes}, {"image": "image_3d"}, affine=affine)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    warnings.simplefilter("ignore")
    torch.manual_seed(7)
    torch.set_num_threads(1)
    cases = Cases()
    for topic in (pad_and_crop, chosen_crops, mirrors, resizing, rotations, affines, deformations, spacings):
        topic(cases)
    orientations(cases)
    cases.g.save(parser.parse_args().output)


if __name__ == "__main__":
    main()
