#!/usr/bin/env python3
"""Writes resampling.safetensors: MONAI's Spacingd by splines and onto the world's axes, and its ResampleToMatchd.

    python tests/golden/make_resampling.py [--output FOLDER]      (needs benchmarks/requirements.txt)

Cases are as those of make_spatial.py, with "affine" and "affine_out" of the key image; "affine_target" is that of the key
target, which ResampleToMatchd follows. Affines are float32, as NIfTI has them.
"""
import argparse
from pathlib import Path

import monai.transforms as mt
import numpy as np
import torch
from make_golden import Golden
from make_spatial import numbers, oblique, plain
from monai.data import MetaTensor
from monai.transforms.utils import create_rotate

IMAGE = {2: "image_2d", 3: "image_3d"}
SPACING = {2: [1.0, 1.2], 3: [0.8, 1.2, 2.5]}


def in_float32(affine):
    return affine.astype(np.float32).astype(np.float64)


class Cases:
    def __init__(self):
        self.g, self.count = Golden("resampling"), {}
        self.g.put("image_2d", torch.rand(2, 9, 7))
        self.g.put("image_3d", torch.rand(1, 5, 7, 6))
        self.g.put("target_2d", torch.zeros(1, 8, 10))
        self.g.put("target_3d", torch.zeros(1, 6, 5, 8))

    def affine(self, d):
        turn = np.eye(4) if d == 2 else oblique()
        return in_float32(turn @ np.diag([*SPACING[d], *[1.0] * (4 - d)]))

    def add(self, transform, options, d, result, affine, **more):
        self.count[transform] = self.count.get(transform, 0) + 1
        tensors = {"image": IMAGE[d], "image.out": plain(result).float()}
        if transform == "ResampleToMatchd":
            tensors["target"] = f"target_{d}d"
        more |= {"affine": numbers(affine), "affine_out": numbers(np.asarray(result.affine).round(7))}
        self.g.add(f"{transform}_{self.count[transform]}", {"keys": ["image"], **options}, tensors, transform=transform,
                   **more)

    def spacing(self, options, d):
        affine = self.affine(d)
        image = MetaTensor(self.g.tensors[IMAGE[d]].clone(), affine=affine)
        self.add("Spacingd", options, d, mt.Spacingd(keys=["image"], **options)({"image": image})["image"], affine)

    def diagonal(self, options):
        """MONAI's axes of a tensor and of the world are both (x,y,z), ours of a tensor (z,y,x)."""
        turned, affine = [2, 1, 0, 3], self.affine(3)
        image = MetaTensor(self.g.tensors["image_3d"].permute(0, 3, 2, 1).clone(), affine=affine[:, turned])
        given = {**options, "pixdim": options["pixdim"][::-1]}
        result = mt.Spacingd(keys=["image"], diagonal=True, **given)({"image": image})["image"]
        back = MetaTensor(result.as_tensor().permute(0, 3, 2, 1), affine=np.asarray(result.affine)[:, turned])
        self.add("Spacingd", {"diagonal": True, **options}, 3, back, affine)

    def match(self, options, d):
        affine = self.affine(d)
        move = np.eye(4)
        if d == 3:
            move = create_rotate(3, [0.1, 0.2, -0.15])
            move[:3, 3] = [0.7, -0.4, 0.3]
        target_affine = in_float32(affine @ move @ np.diag([0.81, 1.13, 0.73, 1.0] if d == 3 else [1.13, 0.73, 1, 1]))
        image = MetaTensor(self.g.tensors[IMAGE[d]].clone(), affine=affine)
        target = MetaTensor(self.g.tensors[f"target_{d}d"].clone(), affine=target_affine)
        transform = mt.ResampleToMatchd(keys=["image"], key_dst="target", **options)
        result = transform({"image": image, "target": target})["image"]
        self.add("ResampleToMatchd", {"key_dst": "target", **options}, d, result, affine,
                 affine_target=numbers(target_affine))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    torch.manual_seed(17)
    torch.set_num_threads(1)
    cases = Cases()
    for d in (2, 3):
        pixdim = {2: [0.83, 1.43], 3: [0.87, 1.27, 1.93]}[d]
        for order in range(6):
            cases.spacing({"pixdim": pixdim, "mode": order}, d)
        for order, padding_mode in ((1, "reflection"), (2, "reflection"), (3, "reflection"), (5, "reflection")):
            cases.spacing({"pixdim": pixdim, "mode": order, "padding_mode": padding_mode}, d)
        cases.spacing({"pixdim": pixdim, "mode": 3, "align_corners": True}, d)
        cases.spacing({"pixdim": 0.61, "mode": 4, "align_corners": True, "padding_mode": "reflection"}, d)
        for options in ({}, {"mode": "nearest"}, {"mode": 3}, {"mode": 1, "padding_mode": "zeros"},
                        {"mode": 3, "padding_mode": "zeros"}, {"mode": 5, "padding_mode": "reflection"},
                        {"padding_mode": "reflection", "align_corners": True}):
            cases.match(options, d)
    for options in ({}, {"mode": "nearest"}, {"mode": 3, "padding_mode": "zeros"}, {"align_corners": True}):
        cases.diagonal({"pixdim": [0.9, 1.1, 1.9], **options})
    cases.g.save(parser.parse_args().output)


if __name__ == "__main__":
    main()
