#!/usr/bin/env python3
"""Networks for benchmarks/exported.py: `export FOLDER` writes them by torch.export, `step NAME eager|compile` times a training
step and prints it as benchmark_performance does."""
import json
import logging
import os
import resource
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch
from monai.losses import DiceCELoss
from monai.networks import nets
from torch.export import Dim

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
SHAPE, STEPS = (4, 1, 128, 128), 8
ACT = ("leakyrelu", {"inplace": True, "negative_slope": 0.01})
NETWORKS = {
    "dynunet": lambda: nets.DynUNet(2, 1, 1, [3] * 4, [1, 2, 2, 2], [2, 2, 2], filters=[16, 32, 64, 128],
                                    norm_name=("INSTANCE", {"affine": True}), act_name=ACT),
    "segresnet": lambda: nets.SegResNet(2, 16, 1, 1),
    "swinunetr": lambda: nets.SwinUNETR(in_channels=1, out_channels=1, feature_size=12, spatial_dims=2),
}


def export(folder):
    for name, make in NETWORKS.items():
        sides = {} if name == "swinunetr" else {2: Dim.AUTO, 3: Dim.AUTO}  # sympy takes minutes for its windows
        program = torch.export.export(make().train(), (torch.randn(SHAPE),), dynamic_shapes=({0: Dim.AUTO, **sides},))
        torch.export.save(program, Path(folder) / f"{name}.pt2")


def step(name, how):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    network = NETWORKS[name]().train().to(memory_format=torch.channels_last)
    run = torch.compile(network) if how == "compile" else network
    loss, optimizer = DiceCELoss(sigmoid=True), torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-4)
    image = torch.randn(SHAPE).to(memory_format=torch.channels_last)
    target = (torch.rand(SHAPE) > 0.5).float()
    times = []
    for _ in range(3 + STEPS):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss(run(image), target).backward()
        optimizer.step()
        times.append(1000 * (time.perf_counter() - begin))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"training": {"4": {"fp32": {"median_ms": statistics.median(times[3:]), "peak_memory_mb": peak}}}}))


if __name__ == "__main__":
    {"export": export, "step": step}[sys.argv[1]](*sys.argv[2:])
