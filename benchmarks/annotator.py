#!/usr/bin/env python3
"""How many labels a simulated annotator needs: `serve` chooses the next image (uncertainty or random), the true label is its
"correction", the model is trained from all labels so far, and so on until it has 95 % of the Dice that all labels give.

annotator.py FOLDER_OF_PROGRAMS REALDATA [--sets nuclei cells] [--seeds 0 1 2 3 4] [--labels 1 3] [--steps 40]

REALDATA has stardist/sd_img2d.tif, sd_mask2d.tif (StarDist, BSD-3) and bianb/maize_clsm.tif, maize_clsm_labels.tif
(BioImageAnalysisNotebooks, CC-BY), which are cut into tiles: every fourth tile tests, the others are the pool. For each seed all strategies
start from one model, trained on one label of the pool. Needs numpy and tifffile. Prints a line of JSON for each run, then the means.
"""
import argparse
import io
import json
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

import numpy as np
import tifffile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests/serve"))
from server import Server, run  # noqa: E402


class Start:
    """What Server needs of a model."""

    def __init__(self, binaries, checkpoint):
        self.binaries, self.checkpoint, self.folder = binaries, checkpoint, checkpoint.parent


def tiles(name, realdata):
    """[(image, mask)] of one size."""
    if name == "nuclei":
        image, labels, side = realdata / "stardist/sd_img2d.tif", realdata / "stardist/sd_mask2d.tif", 64
        foreground = tifffile.imread(labels) > 0
    else:  # walls between cells: what touches another label
        image, labels, side = realdata / "bianb/maize_clsm.tif", realdata / "bianb/maize_clsm_labels.tif", 64
        numbers = tifffile.imread(labels)
        foreground = np.zeros(numbers.shape, bool)
        for axis in 0, 1:
            edge = np.diff(numbers, axis=axis) != 0
            first = tuple(slice(None, -1) if a == axis else slice(None) for a in (0, 1))
            last = tuple(slice(1, None) if a == axis else slice(None) for a in (0, 1))
            foreground[first] |= edge
            foreground[last] |= edge
    image = tifffile.imread(image)
    places = [(y, x) for y in range(0, image.shape[0] - side + 1, side) for x in range(0, image.shape[1] - side + 1, side)]
    return [(image[y:y + side, x:x + side], foreground[y:y + side, x:x + side].astype(np.uint8) * 255) for y, x in places]


def form(name, content):
    begin = f'--b0\r\nContent-Disposition: form-data; name="label"; filename="{name}"\r\n\r\n'
    return {"Content-Type": "multipart/form-data; boundary=b0"}, begin.encode() + content + b"\r\n--b0--\r\n"


def ask(server, method, target, body=None, headers=()):
    status, _, answer = server.ask(method, target, body, headers, timeout=300)
    assert status == 200, f"{method} {target}: {status} {answer[:500]}"
    return answer


def dice(server, tests):
    """Of the pixels of all test tiles: some tiles hold almost nothing."""
    shared = both = 0
    for image, mask in tests:
        file = io.BytesIO()
        tifffile.imwrite(file, image)
        found = tifffile.imread(io.BytesIO(ask(server, "POST", "/predict?filename=a.tif&save=mask", file.getvalue()))).squeeze() > 0
        truth = mask > 0
        shared, both = shared + (found & truth).sum(), both + found.sum() + truth.sum()
    return float(2 * shared / both)


def train(server, steps):
    model = server.start["model"][0]
    ask(server, "POST", f"/train/{model}", json.dumps({"trainer.max_steps": steps}).encode())
    while (told := json.loads(ask(server, "GET", "/train/")))["status"] == "RUNNING":
        time.sleep(0.2)
    assert told["status"] == "DONE", told


def label(server, folder, name):
    headers, body = form(f"{name}.tif", (folder / f"{name}.tif").read_bytes())
    ask(server, "PUT", f"/datastore/label?image={name}", body, headers)


def annotate(start, pool, truth, tests, first, strategy, steps, goal, each):
    """[(labels, Dice)] after each training, from one label on."""
    with tempfile.TemporaryDirectory(prefix="cytra-annotator-") as store:
        for image in pool.iterdir():
            shutil.copy(image, store)
        with Server(start, f"datastore={store}") as server:
            most = len(list(pool.iterdir()))
            curve = [(1, dice(server, tests))]
            label(server, truth, first)
            if strategy == "all":
                for image in pool.iterdir():
                    label(server, truth, image.stem)
                train(server, steps)
                return [(most, dice(server, tests))]
            while curve[-1][0] < most and curve[-1][1] < goal:
                count = min(each, most - curve[-1][0])
                for _ in range(count):
                    label(server, truth, json.loads(ask(server, "POST", f"/activelearning/{strategy}", b"{}"))["id"])
                train(server, steps)
                curve.append((curve[-1][0] + count, dice(server, tests)))
            return curve


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("realdata", type=pathlib.Path)
    parser.add_argument("--sets", nargs="+", default=["nuclei", "cells"], choices=["nuclei", "cells"])
    parser.add_argument("--strategies", nargs="+", default=["uncertainty", "random"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--labels", type=int, nargs=2, default=[1, 3], help="between two trainings, of nuclei and of cells")
    parser.add_argument("--steps", type=int, default=40, help="of each training, from the first label on; all labels together have as many as ten of these")
    words = parser.parse_args()
    results = {}
    for name in words.sets:
        all_tiles = tiles(name, words.realdata)
        tests = all_tiles[3::4]
        kept = [tile for i, tile in enumerate(all_tiles) if i % 4 != 3]
        for seed in words.seeds:
            with tempfile.TemporaryDirectory(prefix="cytra-annotator-") as scratch:
                pool, truth, begin = (pathlib.Path(scratch) / part for part in ("pool", "truth", "begin"))
                for folder in pool, truth, begin / "raw", begin / "seg":
                    folder.mkdir(parents=True)
                for i, (image, mask) in enumerate(kept):
                    tifffile.imwrite(pool / f"t{i:02}.tif", image)
                    tifffile.imwrite(truth / f"t{i:02}.tif", mask)
                first = random.Random(seed).choice(sorted(path.stem for path in pool.iterdir()))
                shutil.copy(pool / f"{first}.tif", begin / "raw")
                shutil.copy(truth / f"{first}.tif", begin / "seg")
                run(words.binaries / "train", "experiment=im2im/segmentation", "data=folder", f"data.path={begin}", "trainer.accelerator=cpu",
                    "patch_shape=[64,64]", "model.filters=[8,16,32]", f"seed={seed}", f"trainer.max_steps={words.steps}",
                    "trainer.max_epochs=100000", f"paths.output_dir={scratch}/run", "data.num_workers=1")
                start = Start(words.binaries.resolve(), pathlib.Path(scratch) / "run/checkpoints/best.ckpt")
                full = annotate(start, pool, truth, tests, first, "all", 10 * words.steps, 1, 0)[0][1]
                for strategy in words.strategies:
                    curve = annotate(start, pool, truth, tests, first, strategy, words.steps, 0.95 * full, words.labels[name == "cells"])
                    needed = curve[-1][0] if curve[-1][1] >= 0.95 * full else None
                    print(json.dumps({"set": name, "seed": seed, "strategy": strategy, "pool": len(kept), "full_dice": round(full, 3),
                                      "labels": needed, "dice": [[count, round(value, 3)] for count, value in curve]}), flush=True)
                    results.setdefault((name, strategy), []).append((needed or len(kept)) / len(kept))
    for (name, strategy), shares in results.items():
        print(f"{name}, {strategy}: {100 * statistics.mean(shares):.0f} % of the labels ({', '.join(f'{100 * s:.0f}' for s in shares)})")


if __name__ == "__main__":
    main()
