"""What make_networks_*.py share: a peer's network with weights by formula, so that none are stored.

A case becomes tests/golden/networks/NAME.json: our options, the peer's parameters and buffers by name and shape, and of
every output some values, of every gradient its norm and its product with a pattern. tests/nn/models/networks_test.cpp
gives our network the same weights and compares all of it: so names and shapes fit both ways, too.
"""
import json
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).resolve().parent / "networks"
IMAGE, OUTPUT = 1_000_003, 2_000_003  # seeds; a parameter's is its place among the sorted names
SAMPLES = 64


def pattern(shape, seed):
    """Numbers in [-1, 1) that look random, exact in double: the same in network_golden.h."""
    count = int(np.prod(shape, dtype=np.int64))
    x = (np.arange(count, dtype=np.uint64) * 2654435761 + seed * 40503 + 12345) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    x ^= x >> 16
    return torch.from_numpy((x / 2**31 - 1).reshape(shape))


def fill(network):
    """Gives parameters and float buffers their formula's values; returns [[name, shape], ...]."""
    state = network.state_dict()
    tensors = {}
    for name, tensor in state.items():  # one name for each memory: MONAI's DynUNet has second names
        if tensor.data_ptr() not in [t.data_ptr() for t in tensors.values()] or tensor.numel() == 0:
            tensors[name] = tensor
    with torch.no_grad():
        for seed, name in enumerate(sorted(tensors)):
            tensor = tensors[name]
            if not tensor.is_floating_point():
                continue
            p = pattern(tensor.shape, seed)
            if name.endswith("running_mean"):
                p = 0.1 * p
            elif name.endswith("running_var"):
                p = 1 + 0.5 * p.abs()
            elif tensor.dim() >= 2:
                p = p * (3 * tensor.shape[0] / tensor.numel()) ** 0.5
            else:
                p = 1 + 0.2 * p if name.endswith("weight") else 0.1 * p
            tensor.copy_(p)
    return [[name, list(tensors[name].shape)] for name in sorted(tensors)]


def write(name, network, options, shape, peer, mode="train", run=None):
    """`options`: of our network, with `_target_`. `shape`: of the image. `run`: network, image -> outputs."""
    network.train(mode == "train")
    parameters = fill(network)
    image = pattern(shape, IMAGE).float().requires_grad_()
    outputs = run(network, image) if run else network(image)
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    sum((o.double() * pattern(o.shape, OUTPUT + k)).sum() for k, o in enumerate(outputs)).backward()
    case = {
        "name": name,
        "peer": peer,
        "model": options,
        "mode": mode,
        "image": list(shape),
        "parameters": parameters,
        "outputs": [
            {
                "shape": list(o.shape),
                "largest": o.abs().max().item(),
                "values": o.detach().flatten()[:: max(1, o.numel() // SAMPLES)][:SAMPLES].double().tolist(),
            }
            for o in outputs
        ],
        "gradients": {
            n: [p.grad.double().norm().item(), (p.grad.double() * pattern(p.shape, 0)).sum().item()]
            for n, p in [("", image), *network.named_parameters()]  # "": the image's
            if p.grad is not None
        },
    }
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(case, separators=(",", ":")) + "\n")
    print(name, sum(p.numel() for p in network.parameters()), [tuple(o.shape) for o in outputs])
