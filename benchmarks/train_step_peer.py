"""One training step in PyTorch eager with the peers' networks and losses; prints {"training": {BATCH: {"fp32": {...}}}} as benchmark_performance."""
import argparse
import contextlib
import json
import os
import time

import numpy as np
import torch
from monai.losses import DiceCELoss
from monai.networks.nets import DynUNet, SegResNet, SwinUNETR

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="dynunet", choices=["dynunet", "dynunet_wide", "segresnet", "swinunetr", "mae"])
parser.add_argument("--precision", default="32", choices=["32", "bf16-mixed"])
parser.add_argument("--input-shape", type=int, nargs="+", default=[4, 1, 128, 128])
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--repeats", type=int, default=20)
parser.add_argument("--warm-up", type=int, default=3)
args = parser.parse_args()


def dynunet(filters):
    levels = len(filters)
    return DynUNet(
        spatial_dims=len(args.input_shape) - 2,
        in_channels=args.input_shape[1],
        out_channels=1,
        kernel_size=[3] * levels,
        strides=[1] + [2] * (levels - 1),
        upsample_kernel_size=[2] * (levels - 1),
        filters=filters,
    )


def mae():
    from mae_peer import make_mae

    return make_mae(args.input_shape[2:], args.input_shape[1])


def segmentation_loss(net, image, target):
    return DiceCELoss(sigmoid=True)(net(image).float(), target)


def reconstruction_loss(net, image, _target):
    made, mask = net(image)
    return ((made.float() - image) ** 2 * mask).sum() / mask.sum()


torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
torch.manual_seed(0)
net = {
    "dynunet": lambda: dynunet([16, 32, 64]),
    "dynunet_wide": lambda: dynunet([32, 64, 128, 256]),
    "segresnet": lambda: SegResNet(spatial_dims=3, init_filters=16, in_channels=1, out_channels=1),
    "swinunetr": lambda: SwinUNETR(spatial_dims=3, in_channels=1, out_channels=1, feature_size=24),
    "mae": mae,
}[args.model]().train()
loss_of = reconstruction_loss if args.model == "mae" else segmentation_loss
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2, fused=True)
image = torch.randn(args.input_shape)
if args.channels_last:
    memory_format = torch.channels_last if image.dim() == 4 else torch.channels_last_3d
    net, image = net.to(memory_format=memory_format), image.contiguous(memory_format=memory_format)
target = (torch.rand(args.input_shape[:1] + [1] + args.input_shape[2:]) > 0.5).float()


def autocast():
    return torch.autocast("cpu", torch.bfloat16) if args.precision == "bf16-mixed" else contextlib.nullcontext()


times = []
for step in range(-args.warm_up, args.repeats):
    if step == 0:
        cpu_begin = time.process_time()
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    with autocast():
        loss = loss_of(net, image, target)
    loss.backward()
    optimizer.step()
    if step >= 0:
        times.append((time.perf_counter() - begin) * 1000)
cpu_ms = (time.process_time() - cpu_begin) * 1000 / args.repeats
median, p95 = np.percentile(times, [50, 95])
figures = {"median_ms": median, "p95_ms": p95, "min_ms": min(times), "cpu_ms": cpu_ms, "loss": loss.item()}
row = "fp32" if args.precision == "32" else "bf16"
print(json.dumps({"training": {str(args.input_shape[0]): {row: figures}}, "threads": torch.get_num_threads()}))
