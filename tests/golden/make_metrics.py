#!/usr/bin/env python3
"""Writes metrics.safetensors: what MONAI, torchmetrics and StarDist say of small masks, objects and images.

    python tests/golden/make_metrics.py [--output FOLDER]    (needs benchmarks/requirements.txt, torchmetrics; stardist, of
                                                               which only matching.py is read: --stardist FOLDER)

A case has "target" and "options" of ours, "keys" (names that ours reports), tensors prediction, truth, values, perhaps mask,
and perhaps "spacing", a list per image.
"""
import argparse
import importlib.util
import sys
import types
import warnings
from pathlib import Path

import monai.metrics as mm
import numpy as np
import torch
import torchmetrics
from make_golden import Golden
from scipy import ndimage
from skimage.metrics import adapted_rand_error, variation_of_information

RNG = np.random.default_rng(16)
warnings.filterwarnings("ignore")


def stardist_matching(folder):
    """stardist.matching without the libraries that only speed it up."""
    sys.modules["numba"] = types.SimpleNamespace(jit=lambda **_: lambda f: f)
    sys.modules["tqdm"] = types.SimpleNamespace(tqdm=lambda x, **_: x)
    sys.modules["csbdeep"] = types.ModuleType("csbdeep")
    sys.modules["csbdeep.utils"] = types.SimpleNamespace(_raise=lambda e: (_ for _ in ()).throw(e))
    spec = importlib.util.spec_from_file_location("matching", Path(folder) / "stardist" / "matching.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blobs(*size, share=0.3, sigma=1.5):
    field = ndimage.gaussian_filter(RNG.standard_normal(size), sigma)
    return field > np.quantile(field, 1 - share)


def one_hot(labels, classes):
    return torch.from_numpy(np.stack([labels == k for k in range(classes)], 1).astype(np.uint8))


def class_image(images, *size):
    labels = np.zeros((images, *size), np.int64)
    for image in labels:
        image[blobs(*size)] = 1
        image[blobs(*size, share=0.15)] = 2
    return labels


def disturbed(labels):
    shifted = np.stack([np.roll(image, (1, 2), (-2, -1)) for image in labels])
    return np.where(np.stack([blobs(*image.shape, share=0.15, sigma=1) for image in labels]), 0, shifted)


def mask_pairs():
    """name, prediction, truth (N,K,...), spacing or None"""
    flat, deep = class_image(3, 13, 15), class_image(2, 6, 9, 10)
    missing, unseen = flat.copy(), disturbed(flat)
    missing[1][missing[1] == 2] = 0  # class 2 is not in one truth, class 1 in no prediction of another image
    unseen[2][unseen[2] == 1] = 0
    yield "classes", one_hot(disturbed(flat), 3), one_hot(flat, 3), None
    yield "classes_missing", one_hot(unseen, 3), one_hot(missing, 3), [[0.5, 0.25], [1.0, 2.0], [0.3, 0.3]]
    yield "classes_3d", one_hot(disturbed(deep), 3), one_hot(deep, 3), [[2.0, 0.5, 0.7], [1.0, 1.0, 1.0]]
    binary = one_hot(disturbed(flat), 3)[:, 1:2], one_hot(flat, 3)[:, 1:2]
    yield "binary", *binary, None
    empty = [torch.cat([torch.zeros_like(m[:1]), m[1:]]) for m in binary]
    yield "binary_both_empty", *empty, None
    yield "binary_truth_empty", binary[0], empty[1], None
    yield "binary_prediction_empty", empty[0], binary[1], None
    yield "binary_same", binary[1], binary[1], None
    volume = torch.from_numpy(blobs(1, 1, 5, 7, 8).astype(np.uint8))
    yield "binary_3d", torch.from_numpy(np.roll(volume.numpy(), 1, 4)), volume, [[3.0, 0.4, 0.4]]


def named(name, metric, first, value_of):
    """The mean, and of several classes each's, by name."""
    out = {name: value_of("mean")}
    each = value_of("mean_batch")
    if each.numel() > 1 or first:
        out |= {f"{name}_class_{k + first}": v for k, v in enumerate(each)}
    return out


def masks(add):
    for pair, prediction, truth, spacing in mask_pairs():
        several = truth.shape[1] > 1

        def monai(metric, target, name, options, own=None, use_spacing=False):
            extra = {"spacing": spacing} if use_spacing and spacing else {}
            metric(prediction.float(), truth.float(), **extra)
            each = metric.get_buffer()
            if target == "HausdorffDistanceMetric":  # a quantile of infinities is nan in the peer, which then leaves it out
                has = [m.flatten(2).any(-1)[:, -each.shape[1]:] for m in (prediction, truth)]
                each[has[0] != has[1]] = torch.inf
            first = 1 if several and not options.get("include_background") else 0

            def value_of(reduction):
                value, counts = mm.utils.do_metric_reduction(each.clone(), reduction)  # it writes into it
                return torch.where(counts > 0, value, torch.nan)  # the peer says 0 where nothing counts

            add(f"{target}.{name}.{pair}.{'bg' if options.get('include_background') else ''}{len(names)}", target,
                {**options, **(own or {})}, named(name, metric, first, value_of), prediction=prediction, truth=truth,
                spacing=spacing if use_spacing else None)
            names.append(name)

        names = []
        for background in (True, False) if several else (True,):
            options = {"include_background": background}
            for empty in (True, False):
                monai(mm.MeanIoU(**options, ignore_empty=empty), "MeanIoU", "iou", {**options, "ignore_empty": empty})
            for percentile, directed in ((None, False), (95, False), (80, True)):
                own = {"percentile": percentile, "directed": directed}
                monai(mm.HausdorffDistanceMetric(**options, **own), "HausdorffDistanceMetric", f"hd{percentile or 100}",
                      {**options, **own}, use_spacing=True)
            for symmetric in (True, False):
                monai(mm.SurfaceDistanceMetric(**options, symmetric=symmetric), "SurfaceDistanceMetric",
                      "assd" if symmetric else "asd", {**options, "symmetric": symmetric}, use_spacing=True)
            classes = truth.shape[1] - (0 if background or not several else 1)
            for thresholds in ([1.2] * classes, [0.45, 0.85, 1.7][:classes]):
                monai(mm.SurfaceDiceMetric(**options, class_thresholds=thresholds), "SurfaceDiceMetric", "surface_dice", options,
                      {"class_thresholds": thresholds[:1] if len(set(thresholds)) == 1 else thresholds}, use_spacing=True)
            if pair in ("classes_missing", "binary"):
                confusion(add, pair, prediction, truth, options)
        for steps in ("taxicab", "chessboard") if pair in ("classes_missing", "binary_3d") else ():
            options = {"include_background": False, "distance_metric": steps} if several else {"distance_metric": steps}
            monai(mm.HausdorffDistanceMetric(**options), "HausdorffDistanceMetric", "hd100", options, use_spacing=True)
            monai(mm.SurfaceDistanceMetric(**options), "SurfaceDistanceMetric", "asd", options, use_spacing=True)
        matrix(add, pair, prediction, truth)


RATES = ["sensitivity", "specificity", "precision", "negative predictive value", "miss rate", "fall out", "false discovery rate",
         "false omission rate", "prevalence threshold", "threat score", "accuracy", "balanced accuracy", "f1 score",
         "matthews correlation coefficient", "fowlkes mallows index", "informedness", "markedness"]


def confusion(add, pair, prediction, truth, options):
    keys = {}
    several, first = truth.shape[1] > 1, 0 if options["include_background"] else 1
    for rate in RATES:
        for reduction in ("mean", "mean_batch") if several else ("mean",):
            metric = mm.ConfusionMatrixMetric(**options, metric_name=rate, reduction=reduction)
            metric(prediction.float(), truth.float())
            values = metric.aggregate()[0].flatten()
            name = rate.replace(" ", "_")
            keys |= ({name: values[0]} if reduction == "mean" else
                     {f"{name}_class_{k + first}": v for k, v in enumerate(values)})
    add(f"confusion.{pair}.{first}", "ConfusionMatrixMetric", {**options, "metric_name": RATES}, keys, prediction=prediction,
        truth=truth)


def matrix(add, pair, prediction, truth):
    classes = max(truth.shape[1], 2)
    if truth.shape[1] == 1:
        guess, labels = prediction[:, 0].long(), truth[:, 0].long()
    else:
        guess, labels = prediction.argmax(1), truth.argmax(1)
    for normalize in (None, "true", "pred", "all"):
        metric = torchmetrics.ConfusionMatrix(task="multiclass", num_classes=classes, normalize=normalize)
        counts = torchmetrics.ConfusionMatrix(task="multiclass", num_classes=classes)(guess, labels)
        values = metric(guess, labels).double()
        if normalize == "true":  # 0 of the peer where there is none
            values[counts.sum(1) == 0] = torch.nan
        if normalize == "pred":
            values[:, counts.sum(0) == 0] = torch.nan
        keys = {f"confusion_{t}_{p}": values[t, p] for t in range(classes) for p in range(classes)}
        add(f"matrix.{pair}.{normalize}", "ConfusionMatrix", {"normalize": normalize or "none"}, keys, prediction=prediction,
            truth=truth)


def label_image(*size, share=0.4):
    return ndimage.label(blobs(*size, share=share))[0]


def object_pairs():
    flat = [label_image(28, 32) for _ in range(3)]
    moved = [np.roll(image, (k, 1), (0, 1)) for k, image in enumerate(flat)]
    merged = [np.where(image == 2, 1, image) for image in flat]  # two are taken for one
    cut = [np.where(np.indices(image.shape)[1] % 8 < 4, image * 3, image * 3 + 1) * (image > 0) for image in flat]
    deep = [label_image(7, 12, 14)]
    yield "same", flat, flat
    yield "moved", moved, flat
    yield "merged", merged, flat
    yield "cut", cut, flat
    yield "merged_truth", cut, merged
    yield "unlike", [label_image(28, 32) * 5 for _ in range(3)], flat
    yield "no_prediction", [image * 0 for image in flat], flat
    yield "no_truth", flat, [flat[0] * 0, *flat[1:]]
    yield "deep", [np.roll(deep[0], 1, 2)], deep


def objects(add, matching):
    thresholds = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
    for pair, prediction, truth in object_pairs():
        tensors = {role: torch.from_numpy(np.stack(images)[:, None].astype(np.uint8))
                   for role, images in (("prediction", prediction), ("truth", truth))}
        for by_image in (False, True):
            stats = matching.matching_dataset(truth, prediction, thresholds, by_image=by_image, show_progress=False)
            keys = {"ap": np.mean([s.accuracy for s in stats]), "ap50": stats[0].accuracy, "ap75": stats[5].accuracy}
            add(f"ap.{pair}.{by_image}", "AveragePrecision", {"by_image": by_image}, keys, **tensors)
        for threshold in (0.1, 0.3, 0.5, 0.8):
            s = matching.matching_dataset(truth, prediction, threshold, show_progress=False)
            add(f"f1.{pair}.{threshold}", "ObjectF1", {"threshold": threshold},
                {"object_f1": s.f1, "object_precision": s.precision, "object_recall": s.recall}, **tensors)
        for threshold in (0.3, 0.5, 0.7):
            counts = sum(mm.compute_panoptic_quality(torch.from_numpy(p), torch.from_numpy(t), match_iou_threshold=threshold,
                                                     output_confusion_matrix=True).double()
                         for p, t in zip(prediction, truth))
            tp, fp, fn, iou = counts.tolist()
            half = tp + (fp + fn) / 2
            add(f"pq.{pair}.{threshold}", "PanopticQualityMetric", {"match_iou_threshold": threshold},
                {"pq": iou / half, "rq": tp / half, "sq": iou / tp if tp else 0}, **tensors)
        partitions(add, pair, prediction, truth, tensors)


def partitions(add, pair, prediction, truth, tensors):
    """Of skimage; it says precision for the share of the true pairs, against its documentation."""
    error, recall, precision = np.mean([adapted_rand_error(t, p) for p, t in zip(prediction, truth) if t.any()], 0)
    add(f"rand.{pair}", "AdaptedRandError", {}, {"rand_error": error, "rand_recall": recall, "rand_precision": precision}, **tensors)
    split, merge = np.mean([variation_of_information(t, p) for p, t in zip(prediction, truth)], 0)
    add(f"voi.{pair}", "VariationOfInformation", {}, {"voi": split + merge, "voi_split": split, "voi_merge": merge}, **tensors)


def images(*size, scale=1.0, offset=0.0):
    truth = ndimage.gaussian_filter(RNG.standard_normal(size), [0, 0] + [2] * (len(size) - 2)) * 4
    return [torch.from_numpy((a * scale + offset).astype(np.float32)) for a in (truth + RNG.standard_normal(size) * 0.2, truth)]


def values(add):
    # SSIM in double: of raw intensities the peer's variances would be float32's noise.
    torch.set_default_dtype(torch.float64)
    mm.regression.convert_data_type = lambda tensor, **_: (tensor.double(),)
    for pair, (prediction, truth) in {"flat": images(3, 2, 19, 17), "deep": images(2, 1, 12, 13, 14),
                                      "raw": images(2, 1, 20, 18, scale=30, offset=2000)}.items():
        tensors = {"prediction": prediction, "truth": truth}
        dims = truth.ndim - 2
        exact = truth.double()

        def mean(metric):
            return metric(prediction.double(), exact).mean()

        add(f"mae.{pair}", "MAEMetric", {}, {"mae": mean(mm.MAEMetric())}, **tensors)
        add(f"mse.{pair}", "MSEMetric", {}, {"mse": mean(mm.MSEMetric())}, **tensors)
        add(f"rmse.{pair}", "RMSEMetric", {}, {"rmse": mean(mm.RMSEMetric())}, **tensors)
        add(f"psnr.{pair}", "PSNRMetric", {"max_val": 7.5}, {"psnr": mean(mm.PSNRMetric(7.5))}, **tensors)
        ranges = exact.flatten(1).amax(1) - exact.flatten(1).amin(1)
        own = [mm.PSNRMetric(float(r))(p[None].double(), t[None]).mean() for p, t, r in zip(prediction, exact, ranges)]
        add(f"psnr_own.{pair}", "PSNRMetric", {"max_val": None}, {"psnr": torch.stack(own).mean()}, **tensors)
        flat = [t.double().movedim(1, -1).flatten(0, -2) for t in (prediction, truth)]
        together = torchmetrics.functional.pearson_corrcoef(flat[0].flatten(), flat[1].flatten())
        add(f"pearson.{pair}", "PearsonCorrCoef", {}, {"pearson": together}, **tensors)
        each = [torchmetrics.functional.pearson_corrcoef(p.double().flatten(), t.double().flatten())
                for p, t in zip(prediction.flatten(0, 1), truth.flatten(0, 1))]
        add(f"pearson_each.{pair}", "PearsonCorrCoef", {"by_image": True}, {"pearson": torch.stack(each).mean()}, **tensors)
        for number, options in enumerate((
            {}, {"data_range": 20.0, "kernel_type": "uniform", "win_size": 5},
            {"win_size": [7, 9, 5][:dims], "kernel_sigma": [1.0, 2.0, 1.5][:dims], "k1": 0.02, "k2": 0.05, "data_range": 3.0})):
            value = mm.SSIMMetric(dims, **options)(prediction, truth).mean()
            add(f"ssim.{pair}.{number}", "SSIMMetric", options, {"ssim": value}, **tensors)
        if dims == 2:  # in 3D the peer takes the sides of its border in another order
            value = torchmetrics.functional.structural_similarity_index_measure(prediction.double(), exact, data_range=20.0)
            add(f"ssim.{pair}.reflect", "SSIMMetric", {"data_range": 20.0, "border": "reflect"}, {"ssim": value}, **tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    parser.add_argument("--stardist", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    golden = {}
    for topic in ("masks", "objects", "values"):
        g = golden[topic] = Golden(f"metrics_{topic}")
        seen = {}

        def add(name, target, options, keys, spacing=None, **tensors):
            for role, tensor in tensors.items():
                key = (role, tensor.shape, tensor.numpy().tobytes())
                if key not in seen:
                    seen[key] = g.put(f"{len(seen)}.{role}", tensor)
                tensors[role] = seen[key]
            more = {"spacing": spacing} if spacing else {}
            g.add(name, options, {**tensors, "values": torch.tensor([float(v) for v in keys.values()], dtype=torch.float64)},
                  target=target, keys=list(keys), **more)

        if topic == "masks":
            masks(add)
        elif topic == "objects":
            objects(add, stardist_matching(args.stardist))
        else:
            values(add)
        g.save(args.output)


if __name__ == "__main__":
    main()
