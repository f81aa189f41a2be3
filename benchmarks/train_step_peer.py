"""One training step in PyTorch with the peers' networks and losses; prints {"training": {BATCH: {"fp32": {...}}}} as
benchmark_performance does.

--roof: instead, each of its convolutions alone, forward and backward, in the faster of the two layouts, summed: what a step
takes that does nothing else. "gflops" is their number of operations in 1e9 a second."""
import argparse
import contextlib
import ctypes
import json
import os
import resource
import time

import numpy as np
import torch
from monai.losses import DiceCELoss
from monai.networks.nets import DynUNet, SegResNet, SwinUNETR

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="dynunet", choices=["dynunet", "dynunet_wide", "dynunet_3d", "segresnet", "swinunetr", "mae"])
parser.add_argument("--precision", default="32", choices=["32", "bf16-mixed"])
parser.add_argument("--input-shape", type=int, nargs="+", default=[4, 1, 128, 128])
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--compile", action="store_true", help="torch.compile, its layout pass off: with it the step fails on a CPU")
parser.add_argument("--roof", action="store_true")
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
    "dynunet_3d": lambda: dynunet([32, 64, 128, 256]),
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


def convolutions():
    """Of one forward pass: shape of the input, and the layer; in the order they run."""
    found = []

    def note(layer, inputs, _output):
        found.append((inputs[0].shape, layer))

    kinds = (torch.nn.Conv2d, torch.nn.Conv3d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
    hooks = [m.register_forward_hook(note) for m in net.modules() if isinstance(m, kinds)]
    with torch.no_grad():
        net(image)
    for hook in hooks:
        hook.remove()
    return found


def least_cpu_s(work):
    times = []
    for _ in range(args.warm_up + args.repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def roof():
    # Outputs in memory that is there already: page faults are no part of a roof.
    libc = ctypes.CDLL(None)
    libc.mallopt(-4, 0)  # M_MMAP_MAX
    libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
    dtype = torch.bfloat16 if args.precision == "bf16-mixed" else torch.float32
    last = torch.channels_last if image.dim() == 4 else torch.channels_last_3d
    seconds = operations = 0
    for number, (shape, layer) in enumerate(convolutions()):
        how = (layer.stride, layer.padding, layer.dilation, layer.transposed, layer.output_padding, layer.groups)
        of_layouts = []
        for layout in (torch.contiguous_format, last):
            x = torch.randn(shape).to(dtype).contiguous(memory_format=layout)
            weight = layer.weight.detach().to(dtype).contiguous(memory_format=layout)
            y = torch.ops.aten.convolution(x, weight, None, *how)
            dy = torch.randn(y.shape).to(dtype).contiguous(memory_format=layout)
            needs = [number > 0, True, False]
            of_layouts.append(
                least_cpu_s(lambda: torch.ops.aten.convolution(x, weight, None, *how))
                + least_cpu_s(lambda: torch.ops.aten.convolution_backward(dy, x, weight, None, *how, needs))
            )
        seconds += min(of_layouts)
        pixels = (x if layer.transposed else y).numel() // (x if layer.transposed else y).shape[1]
        operations += 2 * pixels * weight.numel() * (3 if number > 0 else 2)
    return {"cpu_ms": seconds * 1000, "gflops": operations / seconds / 1e9}


def show(figures):
    figures["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    row = "fp32" if args.precision == "32" else "bf16"
    print(json.dumps({"training": {str(args.input_shape[0]): {row: figures}}, "threads": torch.get_num_threads()}))


def autocast():
    return torch.autocast("cpu", torch.bfloat16) if args.precision == "bf16-mixed" else contextlib.nullcontext()


if args.roof:
    show(roof())
    raise SystemExit
if args.compile:
    import torch._inductor.config

    torch._inductor.config.layout_optimization = False
    net = torch.compile(net)
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
show(figures)
