#!/usr/bin/env python3
"""Writes datasets.json: what MONAI, nnU-Net's split, and pandas make of small data sets.

nnunetv2.utilities.crossval_split.generate_crossval_split is KFold(5, shuffle=True, random_state=12345) over the sorted
identifiers; CytoDL's MultiDimImageDataset takes range(start, stop + 1, step) as time points.
"""
import json
import pathlib
import tempfile

import numpy as np
import pandas as pd
from monai.data import load_decathlon_datalist
from sklearn.model_selection import KFold

HERE = pathlib.Path(__file__).parent


def folds(count):
    names = np.sort([f"case_{i}" for i in range(count)])  # case_10 before case_2
    return [[str(names[i]) for i in valid] for _, valid in
            KFold(n_splits=5, shuffle=True, random_state=12345).split(names)]


def decathlon():
    listing = {
        "training": [
            {"image": "./imagesTr/a.nii", "label": "labelsTr/../labelsTr/a.nii", "fold": 0, "site": "x"},
            {"image": ["imagesTr/b0.nii", "./imagesTr/b1.nii"], "label": "labelsTr/b.nii", "fold": 1, "mask": "labelsTr/a.nii"},
        ],
        "validation": [{"image": "imagesTr/c.nii", "label": "labelsTr/c.nii"}],
        "test": ["./imagesTs/d.nii"],
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("imagesTr/a", "imagesTr/b0", "imagesTr/b1", "imagesTr/c", "labelsTr/a", "labelsTr/b", "labelsTr/c",
                     "imagesTs/d"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / f"{name}.nii").write_text("x")
        (root / "dataset.json").write_text(json.dumps(listing))
        lists = {key: load_decathlon_datalist(root / "dataset.json", data_list_key=key) for key in listing}
        return {"listing": listing, "lists": json.loads(json.dumps(lists).replace(folder + "/", ""))}


def percentiles():
    values = (np.arange(5000) * 7919 % 251).astype(np.uint8)
    values[:7] = 255
    return {str(q): float(np.percentile(values, q, method="lower")) for q in (0.5, 50, 99.5)}


def manifest():
    text = '\ufeffraw,note,w\r\n"a,1.tif","say ""hi""",2.5\r\n\r\nb.tif,"two\nlines",0\r\n'
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.csv"
        path.write_bytes(text.encode())
        return {"text": text, "rows": pd.read_csv(path).values.tolist()}


if __name__ == "__main__":
    golden = {"folds": {str(n): folds(n) for n in (5, 7, 20, 33)}, "decathlon": decathlon(), "percentiles": percentiles(),
              "manifest": manifest()}
    (HERE / "datasets.json").write_text(json.dumps(golden, indent=1) + "\n")
