#!/usr/bin/env python3
"""Writes losses.safetensors and losses_shape.safetensors: values and gradients of MONAI's, torch's and nnU-Net's losses on small, fixed inputs.

    python tests/golden/make_losses.py [--output FOLDER] [--nnunet FOLDER of nnunetv2's source]
"""
import argparse
import importlib.util
import itertools
from pathlib import Path

import monai.losses as ml
import torch
from make_golden import Golden
from torch import nn

SOFTMAX, SIGMOID = {"softmax": True, "to_onehot_y": True}, {"sigmoid": True}
TENSORS = ("weight", "pos_weight")  # arguments that torch wants as tensors


def blobs(*shape):
    """A mask with borders, as the losses of distances want one."""
    axes = torch.meshgrid(*[torch.linspace(-1, 1, n) for n in shape[2:]], indexing="ij")
    centers = torch.rand(*shape[:2], len(axes)) - 0.5
    square = sum((a - centers[..., d].reshape(*shape[:2], *[1] * len(axes))) ** 2 for d, a in enumerate(axes))
    return (square < 0.35).float()


def inputs(g):
    """name -> (logits, target, mask): a mask, classes, masks that overlap, images; 2D and 3D."""
    made = {}
    for name, shape in (("2d", (2, 3, 5, 4)), ("3d", (1, 3, 3, 4, 3))):
        one = (shape[0], 1, *shape[2:])
        classes = torch.randn(shape) * 2
        labels = blobs(*one) + blobs(*one)
        mask = (torch.rand(one) > 0.3).float()
        for kind, x, y in (
            ("mask", torch.randn(one) * 2, blobs(*one)),
            ("classes", classes, labels),
            ("masks", classes, blobs(*shape)),
            ("image", torch.rand(shape), torch.rand(shape)),
        ):
            made[f"{kind}_{name}"] = x, y, mask
    made["wide_2d"] = torch.rand(2, 1, 12, 11), torch.rand(2, 1, 12, 11), None
    made["wide_3d"] = torch.rand(1, 1, 6, 7, 5), torch.rand(1, 1, 6, 7, 5), None
    return {
        k: tuple(None if t is None else g.put(f"{k}.{r}", t) for r, t in zip(("logits", "target", "mask"), v))
        for k, v in made.items()
    }


def torch_loss(kind, channels=0):
    def make(options):
        weights = {k: torch.tensor(v).reshape(-1, *[1] * channels) if k in TENSORS else v for k, v in options.items()}
        return getattr(nn, kind)(**weights)

    return make


def cases(nnunet_topk):
    """(our name, options, how the peer computes it, inputs). A peer of None: the class of that name in MONAI."""

    def squeezed(make):
        """torch's cross-entropy wants class numbers without a channel."""
        return lambda options: lambda x, y: make(options)(x, y[:, 0].long() if y.shape[1] == 1 else y)

    both, every = ("mask_2d", "mask_3d"), ("classes_2d", "classes_3d")
    for kind in ("DiceLoss", "GeneralizedDiceLoss", "TverskyLoss"):
        yield kind, SIGMOID, None, both
        yield kind, SIGMOID | {"reduction": "sum", "smooth_nr": 0.1, "smooth_dr": 0.2}, None, ("masks_2d",)
        yield kind, SOFTMAX, None, every
        yield kind, SOFTMAX | {"include_background": False, "batch": True}, None, every
        yield kind, SIGMOID | {"soft_label": True}, None, ("image_2d",)
    yield "DiceLoss", SOFTMAX | {"weight": [0.2, 1.0, 3.0], "jaccard": True}, None, every
    yield "DiceLoss", SIGMOID | {"weight": [2.5], "squared_pred": True}, None, ("masks_2d", "masks_3d")
    yield "DiceLoss", {}, None, ("image_2d",)  # no activation
    for w_type in ("simple", "uniform"):
        yield "GeneralizedDiceLoss", SOFTMAX | {"w_type": w_type}, None, every
    yield "TverskyLoss", SOFTMAX | {"alpha": 0.3, "beta": 0.7}, None, every
    yield "DiceCELoss", SOFTMAX | {"weight": [0.2, 1.0, 3.0], "include_background": False}, None, every
    yield "DiceCELoss", SOFTMAX | {"weight": [0.2, 1.0, 3.0], "label_smoothing": 0.1}, None, every
    yield "DiceCELoss", SIGMOID | {"weight": [2.0], "lambda_dice": 0.4}, None, both

    yield "FocalLoss", {}, None, ("mask_2d", "mask_3d", "masks_2d")
    yield "FocalLoss", {"gamma": 1.5, "alpha": 0.3, "reduction": "sum"}, None, ("masks_2d", "masks_3d")
    yield "FocalLoss", {"to_onehot_y": True, "weight": [0.2, 1.0, 3.0], "alpha": [0.1, 0.5, 0.9]}, None, every
    focal = {"to_onehot_y": True, "use_softmax": True}
    yield "FocalLoss", focal | {"alpha": 0.25}, None, every
    yield "FocalLoss", focal | {"alpha": [0.5, 0.9], "include_background": False, "gamma": 3.0}, None, every
    yield "DiceFocalLoss", SIGMOID, None, both
    yield "DiceFocalLoss", SOFTMAX | {"weight": [0.2, 1.0, 3.0], "alpha": 0.25, "lambda_focal": 2.0}, None, every
    yield "DiceFocalLoss", SOFTMAX | {"include_background": False, "batch": True, "gamma": 1.0}, None, every

    for options in ({}, {"weight": [0.2, 1.0, 3.0], "label_smoothing": 0.2}, {"weight": [0.2, 1.0, 3.0], "reduction": "sum"}):
        yield "CrossEntropyLoss", options, squeezed(torch_loss("CrossEntropyLoss")), every + ("image_2d",)
    for options in ({}, {"weight": [0.5, 1.0, 2.0], "pos_weight": [3.0, 1.0, 0.5], "reduction": "sum"}):
        yield "BCEWithLogitsLoss", options, torch_loss("BCEWithLogitsLoss", channels=2), ("masks_2d",)
        yield "BCEWithLogitsLoss", options, torch_loss("BCEWithLogitsLoss", channels=3), ("masks_3d",)
    for options in ({"k": 10.0}, {"k": 60.0, "label_smoothing": 0.1}):
        yield "TopKLoss", options, lambda o: nnunet_topk(**o), every


def shape_cases():
    """Of differences, structure, distances and skeletons; as cases()."""
    both, every = ("mask_2d", "mask_3d"), ("classes_2d", "classes_3d")
    for kind, more in (("MSELoss", {}), ("L1Loss", {}), ("HuberLoss", {"delta": 0.3}), ("SmoothL1Loss", {"beta": 0.2})):
        yield kind, {}, torch_loss(kind), ("image_2d", "image_3d")
        yield kind, more | {"reduction": "sum"}, torch_loss(kind), ("image_2d", "image_3d")

    ssim = {"spatial_dims": 2, "win_size": 5}
    yield "SSIMLoss", {"spatial_dims": 2}, None, ("wide_2d",)
    yield "SSIMLoss", ssim | {"kernel_type": "uniform", "k1": 0.1, "k2": 0.2, "reduction": "sum"}, None, ("wide_2d",)
    yield "SSIMLoss", ssim | {"win_size": [7, 4], "kernel_sigma": [1.0, 2.0], "data_range": 2.0}, None, ("wide_2d",)
    yield "SSIMLoss", ssim | {"spatial_dims": 3}, None, ("wide_3d",)

    for kind in ("BoundaryLoss", "HausdorffDTLoss", "LogHausdorffDTLoss"):
        yield kind, SIGMOID, None, both
        yield kind, SOFTMAX, None, every
        yield kind, SOFTMAX | {"include_background": False, "batch": True, "reduction": "sum"}, None, every
    yield "HausdorffDTLoss", SOFTMAX | {"alpha": 1.5, "include_background": True}, None, every
    for kind in ("SoftclDiceLoss", "SoftDiceclDiceLoss"):
        yield kind, SIGMOID, None, both
        yield kind, SOFTMAX | {"iter_": 2, "include_background": False, "smooth_nr": 0.5, "smooth": 1e-2}, None, every
        yield kind, SIGMOID | {"reduction": "sum", "smooth_dr": 2.0}, None, ("masks_2d", "masks_3d")


def masked_cases():
    """The peers' own ignore_index: of one channel, where MONAI's means are ours. (ours, options, peer, inputs)"""
    for kind in ("DiceLoss", "TverskyLoss"):
        yield kind, SIGMOID | {"ignore_index": 7}, None, ("mask_2d", "mask_3d")
        yield kind, SOFTMAX | {"ignore_index": 7, "batch": True}, None, ("classes_2d", "classes_3d")
    yield "FocalLoss", {"ignore_index": 7}, None, ("mask_2d", "mask_3d")
    weighted = {"ignore_index": 7, "weight": [0.2, 1.0, 3.0]}
    for options in ({"ignore_index": 7}, weighted, weighted | {"label_smoothing": 0.2, "reduction": "sum"}):

        def cross_entropy(options):
            weight = torch.tensor(options["weight"]) if "weight" in options else None
            loss = nn.CrossEntropyLoss(**options | {"weight": weight})
            return lambda x, y: loss(x, y[:, 0].long())

        yield "CrossEntropyLoss", options, cross_entropy, ("classes_2d", "classes_3d")


def monai_loss(kind, options):
    weight = {"weight": torch.tensor(options["weight"])} if "weight" in options else {}
    if kind != "DiceCELoss" and len(options.get("weight", [])) == 1:
        weight = {"weight": options["weight"][0]}
    return getattr(ml, kind)(**options | weight)


def add(g, kind, options, peer, key, keys):
    x = g.tensors[keys[0]].clone().requires_grad_()
    target = keys[1]
    if "ignore_index" in options:
        y = torch.where(g.tensors[keys[2]] > 0, g.tensors[target], torch.tensor(float(options["ignore_index"])))
        target = f"{key}.ignored"
        if target not in g.tensors:
            g.put(target, y)
    loss = peer(options) if peer else monai_loss(kind, options)
    value = loss(x, g.tensors[target])
    value.backward()
    tensors = {"logits": keys[0], "target": target, "loss": value, "grad": x.grad}
    g.add(f"{len(g.cases)}.{kind}.{key}", options, tensors, loss=kind)


def deep_supervision(g):
    """Outputs of three sizes against one target: MONAI's weights of them, and nnU-Net's."""
    target = g.put("levels.target", blobs(1, 1, 12, 9))
    levels = [torch.randn(1, 1, *size) for size in ((12, 9), (6, 5), (3, 2), (2, 2), (1, 1), (1, 1))]
    keys = {f"level.{i}": g.put(f"levels.{i}", level) for i, level in enumerate(levels)}
    for name, options in {"exp": {}, "two": {"weight_mode": "two"}, "same": {"weight_mode": "same"}}.items():
        loss = ml.DeepSupervisionLoss(ml.DiceCELoss(sigmoid=True), **options)
        g.add(f"levels.{name}", options, keys | {"target": target, "loss": loss(levels, g.tensors[target])}, loss="levels")
    weights = [1, 0.5, 0.25, 0.125, 0.0625, 0]
    loss = ml.DeepSupervisionLoss(ml.DiceCELoss(sigmoid=True), weights=[w / sum(weights) for w in weights])
    g.add("levels.nnunet", {}, keys | {"target": target, "loss": loss(levels, g.tensors[target])}, loss="levels")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    parser.add_argument("--nnunet", type=Path, required=True)
    args = parser.parse_args()
    spec = importlib.util.spec_from_file_location("robust", args.nnunet / "nnunetv2/training/loss/robust_ce_loss.py")
    robust = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(robust)

    topk = robust.TopKLoss
    for topic, groups in {"losses": [cases(topk), masked_cases()], "losses_shape": [shape_cases()]}.items():
        torch.manual_seed(0)
        g = Golden(topic)
        keys = inputs(g)
        for kind, options, peer, names in itertools.chain(*groups):
            for name in names:
                add(g, kind, options, peer, name, keys[name])
        if topic == "losses_shape":
            deep_supervision(g)
        used = {key for case in g.cases for key in case["tensors"].values()}
        g.tensors = {key: tensor for key, tensor in g.tensors.items() if key in used}
        g.save(args.output)


if __name__ == "__main__":
    main()
