#!/usr/bin/env python3
"""The studies of experiments/classes in PyTorch + MONAI: the encoder of MONAI's SegResNet, the mean of its features, a linear map.

    experiments/classes/peer.py digits|faces FOLDER --seed 0    prints {"study", "seed", "accuracy", "roc_auc", "calibration_error", "cpu_s"}

FOLDER: of prepare.py. Needs monai, scikit-learn, torchmetrics, imageio.
"""
import argparse
import json
import os
import time
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import torch
from monai.networks.nets import SegResNet
from monai.transforms import NormalizeIntensity, SpatialPad
from sklearn.metrics import accuracy_score, roc_auc_score
from torchmetrics.functional.classification import multiclass_calibration_error

STUDIES = {"digits": dict(epochs=10, batch=32), "faces": dict(epochs=30, batch=16)}
parser = argparse.ArgumentParser()
parser.add_argument("study", choices=STUDIES)
parser.add_argument("folder", type=Path)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
study = STUDIES[args.study]
torch.manual_seed(args.seed)
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))


def read(part):
    images, classes = [], []
    for number, folder in enumerate(sorted((args.folder / part).iterdir())):
        for path in sorted(folder.glob("*.png")):
            image = torch.from_numpy(imageio.imread(path).astype(np.float32))[None]
            images.append(SpatialPad([28, 28])(NormalizeIntensity()(image)).as_tensor())
            classes.append(number)
    return torch.stack(images), torch.tensor(classes)


class Classifier(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        whole = SegResNet(2, 16, 1, classes, blocks_down=[1, 2, 2], blocks_up=[1, 1])
        self.first, self.levels = whole.convInit, whole.down_layers
        self.head = torch.nn.Linear(64, classes)

    def forward(self, x):
        x = self.first(x)
        for level in self.levels:
            x = level(x)
        return self.head(x.mean((2, 3)))


images, classes = read("train")
count = int(classes.max()) + 1
net = Classifier(count)
steps = study["epochs"] * -(-len(images) // study["batch"])
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
begin = time.process_time()
for _ in range(study["epochs"]):
    for chosen in torch.randperm(len(images)).split(study["batch"]):
        loss = torch.nn.functional.cross_entropy(net(images[chosen]), classes[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
cpu = time.process_time() - begin
net.eval()
images, classes = read("valid")
with torch.inference_mode():
    probabilities = torch.cat([net(part).softmax(1) for part in images.split(100)]).double()
truth = np.eye(count)[classes.numpy()]
print(json.dumps({
    "study": args.study,
    "seed": args.seed,
    "accuracy": accuracy_score(classes, probabilities.argmax(1)),
    "roc_auc": roc_auc_score(truth, probabilities.numpy(), average="macro"),
    "calibration_error": multiclass_calibration_error(probabilities, classes, count).item(),
    "cpu_s": cpu,
}))
