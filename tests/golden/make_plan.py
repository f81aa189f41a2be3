#!/usr/bin/env python3
"""Writes plan.json: what nnU-Net's planner chooses for data sets of several kinds.

    python tests/golden/make_plan.py [--output FOLDER]      (needs nnunetv2, dynamic-network-architectures)
"""
import argparse
import importlib.abc
import importlib.machinery
import json
import sys
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import torch


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for what the planner imports and does not use here."""

    def find_spec(self, name, path=None, target=None):
        heavy = ("batchgenerators", "batchgeneratorsv2", "SimpleITK", "acvl_utils", "nibabel", "tifffile", "skimage")
        if name.split(".")[0] in heavy or name == "nnunetv2.utilities.utils":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock()
        module.__path__ = []
        module.__spec__ = spec
        return module

    def exec_module(self, module):
        pass


DATA = [  # name, spacings (z, y, x), shapes, channels, classes, GB
    ("planes", [[999, 1, 1]] * 4, [[1, 512, 640], [1, 500, 500], [1, 600, 640], [1, 512, 512]], 1, 2, 8),
    ("small_planes", [[999, 1, 1]] * 3, [[1, 96, 96]] * 3, 1, 2, 8),
    ("wide_planes", [[999, 0.5, 0.5]] * 40, [[1, 300, 3000]] * 40, 3, 5, 8),
    ("large_planes", [[999, 1, 1]] * 200, [[1, 4000, 4000]] * 200, 3, 3, 24),
    ("cubes", [[1, 1, 1]] * 20, [[200, 210, 220]] * 20, 1, 3, 8),
    ("little_memory", [[1, 1, 1]] * 20, [[200, 210, 220]] * 20, 1, 3, 2),
    ("stacks", [[3, 0.5, 0.5]] * 30, [[24, 512, 512]] * 30, 1, 2, 8),
    ("flat_stacks", [[10, 1.5, 1.5], [5, 1.25, 1.25], [8, 1.5, 1.4]] * 8,
     [[10, 240, 256], [14, 220, 216], [9, 256, 256]] * 8, 1, 4, 8),
    ("tiny_stacks", [[0.29, 0.1, 0.1]] * 6, [[32, 64, 64]] * 6, 2, 2, 8),
    ("mixed", [[1.2, 0.8, 0.9], [1, 0.7, 0.7], [2.5, 1, 1], [1.5, 0.9, 0.8]],
     [[120, 320, 300], [160, 400, 380], [60, 256, 256], [100, 300, 310]], 4, 4, 16),
]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    sys.meta_path.insert(0, Absent())
    from nnunetv2.experiment_planning.experiment_planners import default_experiment_planner as nn
    from nnunetv2.preprocessing.resampling.default_resampling import compute_new_shape

    def network(*arguments, make=nn.get_network_from_plans, **more):
        with torch.device("meta"):
            return make(*arguments, **more)

    nn.get_network_from_plans = network
    nn.get_allowed_n_proc_DA = lambda: 1
    nn.ExperimentPlanner.__init__.__globals__.update(
        maybe_convert_to_dataset_name=lambda name: "golden", join=lambda *parts: "", isfile=lambda path: True,
        nnUNet_raw="", nnUNet_preprocessed="", _maybe_copy_splits_file=lambda *paths: None,
        get_filenames_of_train_images_and_targets=lambda *arguments: {},
    )  # fmt: skip
    nn.ExperimentPlanner.determine_normalization_scheme_and_whether_mask_is_used_for_norm = lambda self: ([], [])
    cases = []
    for name, spacings, shapes, channels, classes, memory in DATA:
        nn.load_json = lambda path: {
            "channel_names": {str(i): "x" for i in range(channels)}, "labels": {str(i): i for i in range(classes)},
            "numTraining": len(shapes), "spacings": spacings, "shapes_after_crop": shapes,
        }  # fmt: skip
        planner = nn.ExperimentPlanner("golden", memory)
        target = planner.determine_fullres_target_spacing()
        median = np.median([compute_new_shape(j, i, target) for i, j in zip(spacings, shapes)], 0)
        voxels = float(np.prod(median) * len(shapes))
        first = 1 if shapes[0][0] == 1 else 0
        plan = planner.get_plans_for_configuration(target[first:], median[first:], "", voxels, {})
        network_arguments = plan["architecture"]["arch_kwargs"]
        cases.append({
            "name": name, "spacings": spacings, "shapes": shapes, "channels": channels, "classes": classes,
            "memory_gb": memory, "spacing": [float(v) for v in target[first:]], "median": median[first:].tolist(),
            "patch": [int(v) for v in plan["patch_size"]], "batch_size": int(plan["batch_size"]),
            "strides": network_arguments["strides"], "kernels": network_arguments["kernel_sizes"],
            "features": network_arguments["features_per_stage"],
        })  # fmt: skip
        print(name, cases[-1]["patch"], cases[-1]["batch_size"], cases[-1]["strides"])
    text = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (args.output / "plan.json").write_text(f"[{text}]\n")


if __name__ == "__main__":
    main()
