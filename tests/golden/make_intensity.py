#!/usr/bin/env python3
"""Writes intensity.safetensors and labels.safetensors: what MONAI's intensity and utility transforms compute on small, fixed inputs.

    python tests/golden/make_intensity.py [--output FOLDER]   (needs benchmarks/requirements.txt)

Random transforms draw from a port of Cytra's Rng put in place of their RandomState: the tests replay whole transforms,
draws included. A case has "transform", "options", "keys", and "seed" when it is random; its tensors are the inputs and
outputs of each key, `KEY` and `KEY.out`.
"""
import argparse
import functools
import math
import warnings
from pathlib import Path

import make_golden
import monai.transforms as mt
import numpy as np
import torch
from make_golden import Golden, rounded

MASK = (1 << 64) - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class Stream:
    """src/base/rng.h: Rng(seed)."""

    def __init__(self, seed):
        self.key, self.counter = mix(mix(mix(seed) ^ 0) ^ 0), 0

    def next(self):
        self.counter += 1
        return mix(self.key ^ mix(self.counter))

    def uniform(self):
        return (self.next() >> 11) * 2.0**-53

    def below(self, n):
        limit = MASK - MASK % n
        while True:
            draw = self.next()
            if draw < limit:
                return draw % n


class Random(np.random.RandomState):
    """What MONAI's transforms call, out of a Stream. `inner`: prob is 1 there, and we draw once."""

    def __new__(cls, *_, **__):
        return super().__new__(cls)

    def __init__(self, stream, inner):
        super().__init__()
        self.stream, self.inner = stream, inner

    def rand(self):
        return 0.0 if self.inner else self.stream.uniform()

    def uniform(self, low=0.0, high=1.0, size=None):
        low, high = float(low), float(high)
        if size is None:
            return low + (high - low) * self.stream.uniform()
        count = int(np.prod(size))
        return np.array([low + (high - low) * self.stream.uniform() for _ in range(count)]).reshape(size)

    def normal(self, loc, scale, size):
        values = []
        for _ in range((int(np.prod(size)) + 1) // 2):
            radius = float(scale) * math.sqrt(-2 * math.log(1 - self.stream.uniform()))
            angle = 2 * math.pi * self.stream.uniform()
            values += [loc + radius * math.cos(angle), loc + radius * math.sin(angle)]
        return np.array(values[: int(np.prod(size))]).reshape(size)

    def randint(self, low, high):
        return low + self.stream.below(high - low)

    def shuffle(self, values):
        for i in range(len(values) - 1, 0, -1):
            j = self.stream.below(i + 1)
            values[i], values[j] = values[j], values[i]


def labels(*shape, count):
    return torch.randint(0, count + 1, shape).float()


def inputs():
    flat, volume = rounded(2, 13, 11, scale=3.0), rounded(1, 7, 9, 8) - 0.3
    flat[:, :3, :2] = 0
    flat[0, 8, 7], flat[1, 0, 5] = 40.0, 0.5
    constant = torch.full((2, 4, 3), 0.75)
    constant[1] = rounded(4, 3)
    ring = torch.zeros(1, 13, 11)
    ring[0, 1:6, 1:6], ring[0, 2:5, 2:5], ring[0, 3, 3] = 1, 0, 2
    ring[0, 7:12, 2:9], ring[0, 8:11, 3:8] = 2, 0
    ring[0, 11, 8], ring[0, 0, 8:11], ring[0, 1, 8], ring[0, 1, 10], ring[0, 2, 8:11] = 0, 3, 3, 3, 3
    shell = torch.zeros(1, 7, 9, 8)
    shell[0, 1:5, 1:6, 1:6], shell[0, 2:4, 2:5, 2:5] = 1, 0
    shell[0, 4:7, 5:9, 4:8], shell[0, 5, 6:8, 5:7], shell[0, 4, 5, 4] = 3, 0, 0
    return {
        "flat": flat,
        "volume": volume,
        "stack2": rounded(2, 4, 6, 5),  # two channels in 3D
        "constant": constant,
        "zeros": torch.zeros(1, 3, 4),
        "mask": (rounded(2, 13, 11) > 0.4).float(),
        "cells": labels(1, 13, 11, count=3),
        "cells3": labels(1, 7, 9, 8, count=2),
        "onehot": torch.stack([rounded(13, 11) > 0.5 for _ in range(3)]).float(),
        "onehot3": torch.stack([rounded(4, 6, 5) > 0.5 for _ in range(2)]).float(),
        "ring": ring,
        "binary": (rounded(1, 13, 11) > 0.6).float(),
        "binary3": (rounded(1, 7, 9, 8) > 0.75).float(),
        "shell": shell,
    }


class Cases:
    def __init__(self, topic):
        self.golden = Golden(topic)
        self.sources = {name: self.golden.put(name, value) for name, value in inputs().items()}

    def add(self, transform, sources, seed=None, expect=None, **options):
        """sources: names of inputs, each a case of its own; a tuple of names: the keys a, b of one case."""
        for source in sources:
            keys = dict(zip("abc", source if isinstance(source, tuple) else (source,)))
            data = {key: self.golden.tensors[name].clone() for key, name in keys.items()}
            given = [k for k in keys if k != options.get("mask_key")]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a constant image
                step = getattr(mt, transform)(keys=given, **options)
                if seed is not None:
                    replace_random(step, seed)
                result = step(data)
            number = sum(case["transform"] == transform for case in self.golden.cases)
            tensors = dict(keys)
            for key, value in result.items():
                tensors[f"{key}.out"] = self.golden.put(f"{transform}.{number}.{key}", torch.as_tensor(value).float())
            more = {} if seed is None else {"seed": seed}
            self.golden.add(f"{transform}.{number}", options, tensors, transform=transform, keys=given, **more)


def replace_random(step, seed):
    stream = Stream(seed)
    step.R = Random(stream, inner=False)
    for value in vars(step).values():
        if isinstance(value, mt.Randomizable):
            value.R = Random(stream, inner=True)


def scaling(add):
    both, all_of = ("flat", "volume"), ("flat", "volume", "constant", "zeros")
    for options in ({}, {"channel_wise": True}, {"minv": -1.0, "maxv": 2.5}, {"minv": None, "maxv": 3.0}):
        add("ScaleIntensityd", all_of, **options)
    add("ScaleIntensityd", ("constant",), minv=0.5, maxv=2.0, channel_wise=True)
    add("ScaleIntensityd", both, minv=None, maxv=None, factor=0.3)
    add("ScaleIntensityd", ("flat",), minv=None, maxv=None)
    wide = {"a_min": 0.1, "a_max": 1.7}
    for options in ({}, {"b_min": -1.0, "b_max": 2.0}, {"b_min": -1.0, "b_max": 2.0, "clip": True}):
        add("ScaleIntensityRanged", both, **wide, **options)
    add("ScaleIntensityRanged", both, **wide, b_min=0.2, clip=True)
    add("ScaleIntensityRanged", both, **wide, b_max=0.8, clip=True)
    add("ScaleIntensityRanged", both, a_min=0.5, a_max=0.5, b_min=0.25, b_max=1.0, clip=True)
    add("ScaleIntensityRanged", both, a_min=0.5, a_max=0.5)
    limits = {"lower": 1.0, "upper": 99.0, "b_min": 0.0, "b_max": 1.0}
    for clip in (True, False):
        add("ScaleIntensityRangePercentilesd", all_of, **limits, clip=clip)
        add("ScaleIntensityRangePercentilesd", (*both, "constant"), **limits, clip=clip, channel_wise=True)
    narrow = {"lower": 12.5, "upper": 75.0, "b_min": -1.0, "b_max": 2.0, "clip": True}
    add("ScaleIntensityRangePercentilesd", both, **narrow)
    add("ScaleIntensityRangePercentilesd", both, **narrow, relative=True)
    add("ScaleIntensityRangePercentilesd", both, lower=0.0, upper=100.0, b_min=None, b_max=None)
    add("ScaleIntensityRangePercentilesd", both, lower=33.3, upper=66.6, b_min=None, b_max=0.5, clip=True)
    for options in ({}, {"channel_wise": True}, {"sharpness_factor": 5.0}):
        add("ClipIntensityPercentilesd", both, lower=10.0, upper=85.5, **options)
    for options in ({"lower": None, "upper": 60.0}, {"lower": 30.0, "upper": None}):
        add("ClipIntensityPercentilesd", both, **options)
        add("ClipIntensityPercentilesd", both, **options, sharpness_factor=2.0, channel_wise=True)
    for options in (
        {},
        {"channel_wise": True},
        {"nonzero": True, "channel_wise": True},
        {"subtrahend": 0.4},
        {"divisor": 2.5, "nonzero": True},
        {"subtrahend": 0.4, "divisor": 0.0},
    ):
        add("NormalizeIntensityd", all_of, **options)
    add("NormalizeIntensityd", ("flat",), subtrahend=[0.4, 1.0], divisor=[2.5, 0.5], channel_wise=True)
    add("NormalizeIntensityd", ("flat",), subtrahend=[0.4, 1.0], nonzero=True, channel_wise=True)
    add("ThresholdIntensityd", both, threshold=0.5)
    add("ThresholdIntensityd", both, threshold=0.5, above=False, cval=0.25)
    add("ShiftIntensityd", both, offset=-0.7)
    for options in ({}, {"nonzero": True}, {"channel_wise": True}, {"nonzero": True, "channel_wise": True}):
        add("StdShiftIntensityd", all_of, factor=1.5, **options)


def curves(add):
    both = ("flat", "volume")
    for gamma in (0.4, 1.0, 2.5):
        add("AdjustContrastd", (*both, "zeros"), gamma=gamma)
        add("AdjustContrastd", both, gamma=gamma, invert_image=True)
        add("AdjustContrastd", both, gamma=gamma, retain_stats=True)
    add("AdjustContrastd", both, gamma=1.7, invert_image=True, retain_stats=True)
    add("HistogramNormalized", (*both, "zeros", "constant"))
    add("HistogramNormalized", both, num_bins=10, min=-1, max=1)
    add("HistogramNormalized", (("flat", "mask"),), num_bins=32, min=0, max=1, mask_key="b")
    for sigma in (0.0, 0.3, 1.5):
        add("GaussianSmoothd", both, sigma=sigma)
    add("GaussianSmoothd", ("flat",), sigma=[0.5, 2.0])
    add("GaussianSmoothd", ("volume", "stack2"), sigma=[2.5, 0.4, 1.0])  # taps beyond the image
    for approx in ("sampled", "scalespace"):
        add("GaussianSmoothd", both, sigma=1.2, approx=approx)
    add("GaussianSharpend", both)
    add("GaussianSharpend", ("flat",), sigma1=[1.0, 0.5], sigma2=[0.3, 0.8], alpha=10.0)
    add("GaussianSharpend", ("volume",), sigma1=1.0, sigma2=[0.3, 0.8, 1.2], alpha=2.5, approx="sampled")
    for radius in (0, 1, 2):
        add("MedianSmoothd", both, radius=radius)
    add("MedianSmoothd", ("flat",), radius=[0, 2])
    add("MedianSmoothd", ("volume", "stack2"), radius=[5, 0, 1])


def random_ones(add):
    both, pair = ("flat", "volume"), (("flat", "mask"),)
    sure = {"prob": 1.0, "seed": 11}
    for never in ("RandGaussianNoised", "RandRicianNoised", "RandAdjustContrastd"):
        add(never, ("flat",), prob=0.0, seed=1)
    for transform in ("RandScaleIntensityd", "RandScaleIntensityFixedMeand"):
        add(transform, (*both, *pair), factors=0.7, **sure)
        add(transform, both, factors=[0.9, 0.2], channel_wise=True, **sure)
    for options in ({"fixed_mean": False}, {"preserve_range": True}, {"preserve_range": True, "channel_wise": True}):
        add("RandScaleIntensityFixedMeand", both, factors=[0.5, 2.0], **options, **sure)
    add("RandShiftIntensityd", (*both, *pair), offsets=0.7, **sure)
    add("RandShiftIntensityd", ("flat", "stack2"), offsets=[1.0, -0.2], channel_wise=True, **sure)
    for options in ({}, {"nonzero": True}, {"channel_wise": True}):
        add("RandStdShiftIntensityd", both, factors=[0.5, 2.0], **options, **sure)
    add("RandAdjustContrastd", (*both, *pair), **sure)
    add("RandAdjustContrastd", both, gamma=2.0, invert_image=True, retain_stats=True, **sure)
    add("RandHistogramShiftd", (*both, *pair, "zeros"), **sure)
    add("RandHistogramShiftd", both, num_control_points=[5, 30], **sure)
    add("RandHistogramShiftd", both, num_control_points=3, **sure)
    add("RandBiasFieldd", (*both, *pair, "stack2"), **sure)
    for degree in (1, 2, 5):
        add("RandBiasFieldd", both, degree=degree, coeff_range=[-0.5, 0.5], **sure)
    add("RandGaussianSmoothd", both, **sure)
    ranges = {"sigma_x": [0.3, 0.6], "sigma_y": [1.0, 1.2], "sigma_z": [2.0, 3.0]}
    add("RandGaussianSmoothd", both, **ranges, approx="sampled", **sure)
    add("RandGaussianSharpend", both, **sure)
    add("RandGaussianSharpend", both, sigma1_x=[1.0, 2.0], sigma2_y=[0.2, 0.4], sigma2_z=0.9, alpha=[1.0, 5.0], **sure)
    add("RandGaussianNoised", (*both, *pair), **sure)
    add("RandGaussianNoised", both, mean=0.5, std=2.0, sample_std=False, **sure)
    add("RandRicianNoised", (*both, *pair), **sure)
    add("RandRicianNoised", both, mean=0.5, std=0.2, sample_std=False, relative=True, **sure)
    add("RandRicianNoised", ("flat",), mean=[0.5, 0.1], std=[0.2, 1.0], channel_wise=True, **sure)
    add("RandRicianNoised", ("flat", "stack2"), channel_wise=True, relative=True, **sure)
    for options in ({}, {"alpha": 0.4}, {"alpha": [0.5, 0.5]}, {"alpha": [1.0, 1.0]}):
        add("RandGibbsNoised", both, **options, **sure)
    spike = {"intensity_range": [3.0, 5.0]}
    for options in ({}, {"channel_wise": False}, spike, {**spike, "channel_wise": False}):
        add("RandKSpaceSpikeNoised", (*both, *pair), **options, **sure)
    add("RandKSpaceSpikeNoised", ("flat",), intensity_range=[[3.0, 5.0], [6.0, 6.5]], **sure)
    for zoom in ([0.5, 1.0], [0.3, 0.3], [0.01, 0.01], [1.5, 1.5]):
        add("RandSimulateLowResolutiond", ("volume",), zoom_range=zoom, **sure)
        add("RandSimulateLowResolutiond", ("flat",), zoom_range=zoom, upsample_mode="bilinear", **sure)
    modes = {"downsample_mode": "area", "upsample_mode": "bicubic", "align_corners": True}
    add("RandSimulateLowResolutiond", ("flat", ("flat", "mask")), **modes, **sure)
    exact = {"downsample_mode": "trilinear", "upsample_mode": "nearest-exact"}
    add("RandSimulateLowResolutiond", ("volume",), **exact, align_corners=True, **sure)
    # MONAI lets a box's size grow from hole to hole with max_spatial_size; one hole is the same in both.
    for options in (
        {"holes": 3, "spatial_size": 4},
        {"holes": 2, "spatial_size": [4, 2], "max_holes": 6},
        {"holes": 1, "spatial_size": [3, 2], "max_spatial_size": [6, 50]},
        {"holes": 1, "spatial_size": [0, 2]},
    ):
        size = [*options["spatial_size"], 3] if isinstance(options["spatial_size"], list) else options["spatial_size"]
        deep = {**options, "spatial_size": size}
        if "max_spatial_size" in deep:
            deep["max_spatial_size"] = [4, 5, 6]
        for source, which in (("flat", options), (("flat", "mask"), options), ("volume", deep)):
            add("RandCoarseShuffled", (source,), **which, **sure)
            for fill in ({}, {"fill_value": 0.25}, {"fill_value": [2.0, 3.0]}, {"dropout_holes": False}):
                add("RandCoarseDropoutd", (source,), **which, **fill, **sure)
    add("RandCoarseDropoutd", both, holes=2, spatial_size=3, fill_value=-1.0, dropout_holes=False, **sure)


def utilities(add):
    both = ("flat", "volume")
    add("RepeatChanneld", both, repeats=3)
    add("SplitDimd", both)
    add("SplitDimd", ("stack2",), dim=1, keepdim=False, output_postfixes=["p", "q", "r", "s"])
    add("SqueezeDimd", ("volume",), dim=0)
    add("ConcatItemsd", (("flat", "mask"),), name="c")
    add("ConcatItemsd", (("flat", "mask"),), name="a", dim=-1)
    add("CopyItemsd", (("flat", "mask"),), names=["c", "d"])
    add("LabelToMaskd", ("cells", "cells3"), select_labels=[1, 3])
    add("LabelToMaskd", ("cells", "cells3"), select_labels=2, merge_channels=True)
    add("LabelToMaskd", ("onehot", "flat"), select_labels=[1, 0])
    add("LabelToMaskd", ("onehot",), select_labels=[1, 2], merge_channels=True)
    for options in ({}, {"connectivity": 1}, {"applied_labels": [1, 2], "connectivity": 2}, {"num_components": 2}):
        for independent in (True, False):
            more = {"independent": independent, **options}
            add("KeepLargestConnectedComponentd", ("cells", "cells3", "onehot", "onehot3", "ring")
                if options.get("applied_labels") is None else ("cells", "cells3", "onehot"), **more)
    add("KeepLargestConnectedComponentd", ("cells",), applied_labels=2, num_components=3)
    add("KeepLargestConnectedComponentd", ("cells",), is_onehot=True, applied_labels=0, connectivity=1)
    for options in ({}, {"connectivity": 1}, {"applied_labels": [2]}, {"applied_labels": [1, 3], "connectivity": 2}):
        add("FillHolesd", ("ring", "shell", "cells", "cells3"), **options)
    add("FillHolesd", ("onehot",), connectivity=1)
    add("FillHolesd", ("onehot", "onehot3"), applied_labels=[1], connectivity=1)
    add("FillHolesd", ("onehot", "onehot3"))
    add("AsDiscreted", ("flat", "onehot", "onehot3"), argmax=True)
    add("AsDiscreted", ("cells", "cells3"), to_onehot=4)
    add("AsDiscreted", ("onehot",), argmax=True, to_onehot=3)
    add("AsDiscreted", ("flat", "volume"), threshold=0.7)
    add("AsDiscreted", ("flat",), rounding="torchrounding")
    add("AsDiscreted", (("flat", "cells"),), argmax=[True, False], to_onehot=[2, None], threshold=[None, 1.5])
    add("LabelToContourd", ("mask", "onehot3", "cells", "shell"))
    # No whole numbers: scikit-image 0.26 also removes objects of exactly min_size.
    for options in ({"min_size": 2.5}, {"min_size": 8.5, "connectivity": 2}, {"min_size": 24.5, "independent_channels": False},
                    {"min_size": 12, "by_measure": True, "pixdim": 1.0}):
        add("RemoveSmallObjectsd", ("ring", "shell", "cells", "cells3", "zeros", "binary", "binary3"), **options)


def labels_and_ensembles(add):
    add("LabelFilterd", ("cells", "cells3"), applied_labels=[1, 3])
    add("MapLabelValued", ("cells", "cells3"), orig_labels=[0, 1, 2], target_labels=[3, 0, 7])
    add("Activationsd", ("flat", "volume"), sigmoid=True)
    add("Activationsd", ("flat", "stack2"), softmax=True)
    add("DistanceTransformEDTd", ("mask", "binary3"))
    add("DistanceTransformEDTd", ("binary3",), sampling=[2.0, 0.5, 0.7])
    for options in ({}, {"kernel_size": 5, "padding_mode": "replicate"}, {"spatial_axes": -1, "normalize_kernels": False},
                    {"normalize_gradients": True, "padding_mode": "zeros"}):
        add("SobelGradientsd", ("flat", "volume"), **options)
    three = (("flat", "mask", "flat"),)
    add("MeanEnsembled", three, output_key="c")
    add("MeanEnsembled", three, weights=[1.0, 2.0, 0.5], output_key="a")
    add("MeanEnsembled", three, weights=[[1.0, 2.0], [3.0, 1.0], [0.5, 0.25]], output_key="m")
    add("VoteEnsembled", (("cells", "binary", "ring"),), num_classes=4, output_key="c")
    add("VoteEnsembled", (("onehot", "onehot", "onehot"),), output_key="b")
    add("AsDiscreted", ("flat",), argmax=True, keepdim=True)
    add("SpatialCropd", ("flat",), roi_center=[4, 5], roi_size=[5, 4])
    add("SpatialCropd", ("flat", ("mask", "flat")), roi_center=[1, 9], roi_size=[6, 7])
    add("SpatialCropd", ("volume",), roi_center=[3, 4, 4], roi_size=[4, 9, 2])


def percentiles_of_many(golden):
    """Beyond a million values MONAI leaves torch.quantile for numpy.percentile. The input is made by the test too."""
    image = ((torch.arange(1_000_100, dtype=torch.int64) * 7919) % 1_000_003).float().reshape(1, 100, 10_001) / 1000
    for lower, upper in ((0.0123, 99.9877), (25.0, 50.00001)):
        options = {"lower": lower, "upper": upper, "b_min": 0.0, "b_max": 1.0}
        output = mt.ScaleIntensityRangePercentiles(**options)(image)
        golden.add(f"many.{lower}", options, {"head": output[0, 0, :64]}, transform="many", keys=[])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    make_golden.MAX_BYTES = 1_000_000
    # KeepLargestConnectedComponent: which of equal regions is kept shall not depend on the machine's sort.
    np.argsort = functools.partial(np.argsort, kind="stable")
    torch.set_num_threads(1)
    torch.manual_seed(2000)
    cases = Cases("intensity")
    for family in (scaling, curves, random_ones, utilities):
        family(cases.add)
    percentiles_of_many(cases.golden)
    cases.golden.save(args.output)
    more = Cases("labels")
    labels_and_ensembles(more.add)
    more.golden.save(args.output)


if __name__ == "__main__":
    main()
