#!/usr/bin/env python3
"""The studies of experiments/ in PyTorch + MONAI: the same U-Net, data, augmentation, loss and schedule.

    benchmarks/learning_peer.py STUDY FOLD_FOLDER --seed 0    prints {"study", "seed", "dice" | "pearson", "loss", "cpu_s"}

FOLD_FOLDER: of experiments/prepare.py. What it must share with experiments/STUDY/experiment/*.yaml is in STUDIES.
"""
import argparse
import csv
import json
import os
import time

import numpy as np
import tifffile
import torch
from monai.inferers import sliding_window_inference
from monai.losses import MaskedDiceLoss
from monai.networks.nets import DynUNet
from torch.nn import functional as F

STUDIES = {
    # classes 2: background and foreground; `values`: what the target's numbers mean, -1: not labelled
    "scribbles": dict(dims=2, patch=[64, 64], crops=8, steps=150, lr=3e-3, filters=[16, 32, 64], classes=2, values={0: -1, 1: 0, 2: 1}),
    "membranes": dict(dims=3, patch=[32, 32, 32], crops=4, steps=120, lr=3e-3, filters=[8, 16, 32], classes=2, values={0: 0, 1: 1, 2: -1}),
    "labelfree": dict(dims=2, patch=[96, 96], crops=8, steps=300, lr=1e-3, filters=[16, 32, 64], classes=0),
}
parser = argparse.ArgumentParser()
parser.add_argument("study", choices=STUDIES)
parser.add_argument("fold")
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
s = STUDIES[args.study]
dims, patch, classes = s["dims"], s["patch"], s["classes"]
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))


def read(part):
    with open(f"{args.fold}/{part}.csv") as file:
        rows = list(csv.DictReader(file))
    pairs = []
    for row in rows:
        image = torch.from_numpy(tifffile.imread(row["raw"]).astype(np.float32))
        target = tifffile.imread(row["seg"]).astype(np.float32)
        if classes:
            target = np.vectorize(s["values"].get)(target.astype(int)).astype(np.int64)
        pairs.append([(image - image.mean()) / image.std(unbiased=False), torch.from_numpy(target)])
    return pairs


def pad(x):
    """Up to the patch, as SpatialPadd."""
    sides = []
    for size, least in zip(reversed(x.shape), reversed(patch)):
        sides += [max(0, least - size) // 2, max(0, least - size) - max(0, least - size) // 2]
    return F.pad(x, sides)


def draw(image, target):
    start = [int(rng.integers(0, n - p + 1)) for n, p in zip(image.shape, patch)]
    where = tuple(slice(a, a + p) for a, p in zip(start, patch))
    image, target = image[where], target[where]
    for axis in (-1, -2):
        if rng.random() < 0.5:
            image, target = image.flip(axis), target.flip(axis)
    if rng.random() < 0.5:
        turns = int(rng.integers(1, 4))
        image, target = image.rot90(turns, (-2, -1)), target.rot90(turns, (-2, -1))
    return image, target


def loss_of(logits, target):
    if not classes:
        return F.mse_loss(logits, target[:, None])
    mask = (target >= 0)[:, None]
    truth = F.one_hot(target.clamp(min=0), classes).movedim(-1, 1).float()
    dice = MaskedDiceLoss(softmax=True)(logits, truth, mask.float())
    return dice + F.cross_entropy(logits, target, ignore_index=-1)


levels = len(s["filters"])
net = DynUNet(dims, 1, max(1, classes), [3] * levels, [1] + [2] * (levels - 1), [2] * (levels - 1), filters=s["filters"])
optimizer = torch.optim.AdamW(net.parameters(), lr=s["lr"], weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, s["steps"])
training = [[pad(i), t if not classes else pad(t + 1) - 1] for i, t in read("train")]
mean, deviation = 0.0, 1.0
if not classes:  # the target in its own units: as RegressionTask normalises it
    values = torch.cat([t.flatten() for _, t in training])
    mean, deviation = values.mean(), values.std()
begin = time.process_time()
for step in range(s["steps"]):
    if step % len(training) == 0:
        order = rng.permutation(len(training))
    pairs = [draw(*training[order[step % len(training)]]) for _ in range(s["crops"])]
    image = torch.stack([p[0] for p in pairs])[:, None]
    target = torch.stack([p[1] for p in pairs])
    loss = loss_of(net(image), target if classes else (target - mean) / deviation)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
cpu = time.process_time() - begin

net.eval()
scores = []
with torch.inference_mode():
    for image, target in read("valid"):
        output = sliding_window_inference(image[None, None], patch, 4, net, overlap=0.25, mode="gaussian")[0]
        if classes:
            predicted, counts = output.argmax(0) == 1, target >= 0
            truth = target == 1
            scores.append((2 * (predicted & truth & counts).sum() / ((predicted & counts).sum() + (truth & counts).sum())).item())
        else:
            scores.append(np.corrcoef(output[0].flatten().numpy(), target.flatten().numpy())[0, 1])
figure = "dice" if classes else "pearson"
print(json.dumps({"study": args.study, "seed": args.seed, figure: float(np.mean(scores)), "loss": loss.item(), "cpu_s": cpu}))
