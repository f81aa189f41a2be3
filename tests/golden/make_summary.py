#!/usr/bin/env python3
"""Writes summary.json: parameters, shapes and FLOPs of MONAI's DynUNet, per module, as PyTorch counts them.

    python tests/golden/make_summary.py [--output FOLDER]      (needs benchmarks/requirements.txt)

{"torch", "monai", "cases": [{"name", "options", "shape", "training_flops", "modules": {name: {"parameters", "flops", "in", "out"}}}]};
the module "" is the model. FLOPs are those of torch.utils.flop_counter, training_flops with a backward pass.
"""
import argparse
import json
from pathlib import Path

import monai
import torch
from make_golden import NET_2D
from monai.networks.nets import DynUNet
from torch.utils.flop_counter import FlopCounterMode

NET_3D = NET_2D | {
    "spatial_dims": 3,
    "in_channels": 2,
    "out_channels": 3,
    "filters": [3, 4, 5],
    "kernel_size": [[1, 3, 3], [3, 3, 3], [3, 3, 3]],
    "strides": [[1, 1, 1], [1, 2, 2], [2, 2, 2]],
    "upsample_kernel_size": [[1, 2, 2], [2, 2, 2]],
    "trans_bias": True,
}
CASES = [
    ("2d", NET_2D, (1, 1, 32, 48)),
    ("2d_res", NET_2D | {"res_block": True}, (1, 1, 32, 48)),
    ("3d", NET_3D, (1, 2, 8, 16, 24)),
]


def net_of(options):
    return DynUNet(**{k: tuple(v) if k in ("norm_name", "act_name") else v for k, v in options.items()})


def training_flops(options, shape):
    net = net_of(options)
    counter = FlopCounterMode(display=False)
    with counter:
        net(torch.zeros(shape)).sum().backward()
    return counter.get_total_flops()


def modules_of(options, shape):
    net = net_of(options)
    shapes = {}
    for name, module in net.named_modules():

        def hook(_, inputs, output, name=name):
            shapes.setdefault(name, (list(inputs[0].shape), list(output.shape)))

        module.register_forward_hook(hook)
    counter = FlopCounterMode(display=False)
    with counter:
        net(torch.zeros(shape))
    counts = {k.removeprefix("DynUNet").removeprefix("."): sum(v.values()) for k, v in counter.get_flop_counts().items()}
    # Blocks are in skip_layers, too, and the counter knows a module by one of its names.
    flops = {}
    for name, module in net.named_modules(remove_duplicate=False):
        flops[module] = max(flops.get(module, 0), counts.get(name, 0))
    assert flops[net] == counter.get_total_flops() > 0
    names = [n for n, _ in net.named_modules() if n in shapes and n.split(".")[-1] not in ("conv", "lrelu")]
    names = [n for n in names if not n.startswith("skip_layers")] + ["output_block.conv"]
    return {
        n: {
            "parameters": sum(p.numel() for p in net.get_submodule(n).parameters()),
            "flops": flops[net.get_submodule(n)],
            "in": shapes[n][0],
            "out": shapes[n][1],
        }
        for n in names
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    cases = [
        {"name": n, "options": o, "shape": s, "training_flops": training_flops(o, s), "modules": modules_of(o, s)}
        for n, o, s in CASES
    ]
    peers = {"torch": torch.__version__.split("+")[0], "monai": monai.__version__}
    text = json.dumps({**peers, "cases": cases}, separators=(",", ":"))
    path = parser.parse_args().output / "summary.json"
    path.write_text(text + "\n")
    print(f"{path.name}: {len(cases)} cases, {len(text)} bytes")


if __name__ == "__main__":
    main()
