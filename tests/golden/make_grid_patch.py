#!/usr/bin/env python3
"""Writes grid_patch.safetensors: the patches of MONAI's GridPatchd, stacked.

    python tests/golden/make_grid_patch.py [--output FOLDER]      (needs benchmarks/requirements.txt)
"""
import argparse
from pathlib import Path

import monai.transforms as mt
import torch
from make_golden import Golden


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    torch.manual_seed(23)
    golden = Golden("grid_patch")
    images = {2: golden.put("image_2d", torch.rand(2, 7, 9)), 3: golden.put("image_3d", torch.rand(1, 5, 6, 4))}
    for d, image in images.items():
        size = [3, 4, 2][:d]
        for i, options in enumerate((
            {"num_patches": 4},
            {"num_patches": 30, "overlap": 0.5},
            {"num_patches": 6, "offset": [1, 2, 1][:d], "overlap": 0.3},
            {"num_patches": 9, "pad_mode": "constant"},
            {"num_patches": 9, "pad_mode": "reflect" if d == 2 else "edge", "offset": [-1, -2, 0][:d], "overlap": 0.25},
            {"num_patches": 3, "sort_fn": "max", "overlap": 0.5},
            {"num_patches": 3, "sort_fn": "min"},
            {"num_patches": 2, "patch_size": [0, 3, 2][:d]},
        )):
            options = {"keys": ["image"], "patch_size": size, **options}
            patches = mt.GridPatchd(**options)({"image": golden.tensors[image].clone()})["image"]
            assert len(patches) == options["num_patches"]
            golden.add(f"grid_patch_{d}d_{i}", options, {"image": image, "out": patches.as_tensor()})
    golden.save(parser.parse_args().output)


if __name__ == "__main__":
    main()
