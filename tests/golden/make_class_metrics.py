#!/usr/bin/env python3
"""Writes class_metrics.safetensors: what scikit-learn and torchmetrics say of the classes, labels and values of images.

    python tests/golden/make_class_metrics.py [--output FOLDER]    (needs benchmarks/requirements.txt, scikit-learn, torchmetrics)

A case has "target" and "options" of ours, "keys" (names that ours reports), tensors prediction (probabilities or values, (N,K)),
truth (N,K) and values, of average precisions also the curve (recall, precision) of the last class that is there, the highest score first,
and the confusions of the classes. "takes": masks, where ours is given the classes that are found, one-hot.
"""
import argparse
from pathlib import Path

import numpy as np
import sklearn.metrics as sk
import torch
import torchmetrics.functional.classification as tm
from make_golden import Golden

RNG = np.random.default_rng(36)


def classes(images, count, missing=None):
    """Probabilities that tell the class of two images in three; some are equal, as those of small networks are."""
    truth = RNG.integers(0, count, images)
    if missing is not None:
        truth[truth == missing] = 0
    logits = RNG.normal(size=(images, count)) + 1.5 * np.eye(count)[truth]
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return np.round(probabilities, 2), truth


def tell_classes(add, name, probabilities, truth):
    count = probabilities.shape[1]
    found, is_ = probabilities.argmax(1), np.eye(count)[truth]
    present = [k for k in range(count) if (truth == k).any()]
    tensors = {"prediction": probabilities, "truth": is_}

    def by_class(key, mean, values):
        return {key: mean} | {f"{key}_class_{k}": values.get(k, np.nan) for k in range(count)}

    add(f"accuracy.{name}", "MulticlassAccuracy", {"average": "micro"}, {"accuracy": sk.accuracy_score(truth, found)}, "masks", **tensors)
    recalls = dict(zip(present, sk.recall_score(truth, found, labels=present, average=None)))
    keys = {"balanced_accuracy": np.mean(list(recalls.values()))} | {f"recall_class_{k}": recalls.get(k, np.nan) for k in range(count)}
    assert len(present) < count or np.isclose(keys["balanced_accuracy"], sk.balanced_accuracy_score(truth, found))
    add(f"balanced_accuracy.{name}", "MulticlassAccuracy", {}, keys, "masks", **tensors)
    seen = [k for k in range(count) if k in found or k in truth]
    f1 = dict(zip(seen, sk.f1_score(truth, found, labels=seen, average=None)))
    add(f"f1.{name}", "MulticlassF1Score", {}, by_class("f1", sk.f1_score(truth, found, labels=seen, average="macro"), f1), "masks", **tensors)
    auc = {k: sk.roc_auc_score(is_[:, k], probabilities[:, k]) for k in present}
    add(f"roc_auc.{name}", "MulticlassAUROC", {}, by_class("roc_auc", np.mean(list(auc.values())), auc), **tensors)
    precision = {k: sk.average_precision_score(is_[:, k], probabilities[:, k]) for k in present}
    last = present[-1]
    steps = sk.precision_recall_curve(is_[:, last], probabilities[:, last])
    drawn = {"curve": np.stack([steps[1], steps[0]], 1)[-2::-1], "confusion": sk.confusion_matrix(truth, found, labels=range(count))}
    add(f"average_precision.{name}", "MulticlassAveragePrecision", {},
        by_class("average_precision", np.mean(list(precision.values())), precision), **tensors, **drawn)
    inside = probabilities * 0.999  # on the edge of a bin, float32 decides
    for options in ({}, {"n_bins": 5}, {"norm": "l2"}, {"norm": "max"}):
        value = tm.multiclass_calibration_error(torch.tensor(inside), torch.tensor(truth), count,
                                                options.get("n_bins", 15), options.get("norm", "l1"), validate_args=False)
        label = "_".join(str(v) for v in options.values())
        add(f"calibration{label}.{name}", "MulticlassCalibrationError", options, {"calibration_error": value},
            prediction=inside, truth=is_)


def tell_labels(add):
    truth = (RNG.random((40, 3)) < [0.5, 0.2, 0.7]).astype(float)
    scores = np.round(1 / (1 + np.exp(-RNG.normal(size=truth.shape) - 2 * truth + 1)), 2)
    scores[scores == 0.5] = 0.51
    found, tensors = scores > 0.5, {"prediction": scores, "truth": truth}
    options = {"multilabel": True}
    add("accuracy.labels", "MulticlassAccuracy", options | {"average": "micro"}, {"accuracy": (found == truth).mean()}, "masks", **tensors)
    each = [sk.balanced_accuracy_score(truth[:, k], found[:, k]) for k in range(3)]
    add("balanced_accuracy.labels", "MulticlassAccuracy", options,
        {"balanced_accuracy": np.mean(each)} | {f"balanced_accuracy_class_{k}": v for k, v in enumerate(each)}, "masks", **tensors)
    f1 = sk.f1_score(truth, found, average=None)
    add("f1.labels", "MulticlassF1Score", options, {"f1": f1.mean()} | {f"f1_class_{k}": v for k, v in enumerate(f1)}, "masks", **tensors)
    add("f1_micro.labels", "MulticlassF1Score", options | {"average": "micro"}, {"f1": sk.f1_score(truth, found, average="micro")},
        "masks", **tensors)
    for key, target, of in (("roc_auc", "MulticlassAUROC", sk.roc_auc_score),
                            ("average_precision", "MulticlassAveragePrecision", sk.average_precision_score)):
        values = of(truth, scores, average=None)
        add(f"{key}.labels", target, {}, {key: values.mean()} | {f"{key}_class_{k}": v for k, v in enumerate(values)}, **tensors)
    inside = scores * 0.999
    value = tm.binary_calibration_error(torch.tensor(inside.ravel()), torch.tensor(truth.ravel()).long(), validate_args=False)
    add("calibration.labels", "MulticlassCalibrationError", options, {"calibration_error": value}, prediction=inside, truth=truth)


def tell_values(add):
    truth = np.round(RNG.normal(50, 12, (30, 2)), 1)
    found = np.round(truth + RNG.normal(1, [3, 9], truth.shape), 1)
    each = sk.r2_score(truth, found, multioutput="raw_values")
    add("r2.two", "R2Score", {}, {"r2": sk.r2_score(truth, found)} | {f"r2_class_{k}": v for k, v in enumerate(each)},
        prediction=found, truth=truth)
    one = {"prediction": found[:, :1], "truth": truth[:, :1]}
    add("r2.one", "R2Score", {}, {"r2": sk.r2_score(truth[:, 0], found[:, 0])}, **one)
    add("mae.one", "MAEMetric", {}, {"mae": sk.mean_absolute_error(truth[:, 0], found[:, 0])}, **one)
    add("mse.one", "MSEMetric", {}, {"mse": sk.mean_squared_error(truth[:, 0], found[:, 0])}, **one)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    golden = Golden("class_metrics")
    seen = {}

    def add(name, target, options, keys, takes="values", **tensors):
        for role, values in tensors.items():
            tensor = torch.tensor(np.asarray(values), dtype=torch.float64)
            key = tensor.numpy().tobytes()
            if key not in seen:
                seen[key] = golden.put(f"{len(seen)}.{role}", tensor)
            tensors[role] = seen[key]
        golden.add(name, options, {**tensors, "values": torch.tensor([float(v) for v in keys.values()], dtype=torch.float64)},
                   target=target, keys=list(keys), takes=takes)

    tell_classes(add, "three", *classes(60, 3))
    tell_classes(add, "two", *classes(41, 2))
    tell_classes(add, "missing", *classes(30, 4, missing=2))
    tell_labels(add)
    tell_values(add)
    golden.save(args.output)


if __name__ == "__main__":
    main()
