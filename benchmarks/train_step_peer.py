"""One training step in PyTorch eager with MONAI's network and loss; prints {"train_step": {...}}."""
import argparse
import json
import os
import time

import numpy as np
import torch
from monai.losses import DiceCELoss
from monai.networks.nets import DynUNet

parser = argparse.ArgumentParser()
parser.add_argument("--input-shape", type=int, nargs="+", default=[4, 1, 128, 128])
parser.add_argument("--filters", type=int, nargs="+", default=[16, 32, 64])
parser.add_argument("--repeats", type=int, default=20)
parser.add_argument("--warm-up", type=int, default=5)
args = parser.parse_args()

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
torch.manual_seed(0)
levels = len(args.filters)
net = DynUNet(
    spatial_dims=len(args.input_shape) - 2,
    in_channels=args.input_shape[1],
    out_channels=1,
    kernel_size=[3] * levels,
    strides=[1] + [2] * (levels - 1),
    upsample_kernel_size=[2] * (levels - 1),
    filters=args.filters,
).train()
loss_function = DiceCELoss(sigmoid=True)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2, fused=True)
image = torch.randn(args.input_shape)
target = (torch.rand(args.input_shape[:1] + [1] + args.input_shape[2:]) > 0.5).float()

times = []
for step in range(args.warm_up + args.repeats):
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss = loss_function(net(image), target)
    loss.backward()
    optimizer.step()
    times.append((time.perf_counter() - begin) * 1000)
times = times[args.warm_up :]
median, p95 = np.percentile(times, [50, 95])
figures = {"median_ms": median, "p95_ms": p95, "min_ms": min(times), "loss": loss.item()}
print(json.dumps({"train_step": figures, "threads": torch.get_num_threads()}))
