#!/usr/bin/env python3
"""Golden values of Cellpose-SAM: tests/golden/networks/cpsam_*.json, cellpose/. Needs cellpose 4.2 and segment-anything.

cellpose/cpsam is a small network as cellpose saves its own; cellpose.json has names and shapes of the published one, and what
CellposeModel.eval() gives with the small one for images by formula. cellpose/labels.safetensors: 64 objects, and what
dynamics.py makes of their flows with what a network might add.
"""
import json
import logging
from functools import partial
from pathlib import Path

import numpy as np
import torch
from cellpose import dynamics, models, vit
from network_golden import fill, pattern, write
from safetensors.torch import save_file
from segment_anything import sam_model_registry
from segment_anything.modeling import ImageEncoderViT

FOLDER = Path(__file__).resolve().parent
OPTIONS = dict(embed_dim=16, depth=3, num_heads=2, mlp_ratio=2.0, window_size=14, global_attn_indexes=[1], out_chans=8)


def small(ps=8, bsize=256, rdrop=0.0, **changes):
    """CPSAM with another encoder than vit_l's, of an image of 1024 pixels and patches of 16 all the same."""
    o = {**OPTIONS, **changes}

    def build(_):
        encoder = ImageEncoderViT(img_size=1024, patch_size=16, qkv_bias=True, use_rel_pos=True,
                                  norm_layer=partial(torch.nn.LayerNorm, eps=1e-6), **o)
        return type("Sam", (), {"image_encoder": encoder})

    vit.sam_model_registry = {"vit_l": build}
    return vit.CPSAM(ps=ps, bsize=bsize, rdrop=rdrop), {"_target_": "CPSAM", "img_size": bsize, "patch_size": ps,
                                                        "pretrained_side": 64, "rdrop": rdrop, **o}


def values(array):
    flat = torch.as_tensor(np.ascontiguousarray(array)).flatten().double()
    return {"shape": list(array.shape), "largest": flat.abs().max().item(), "values": flat[:: max(1, len(flat) // 256)][:256].tolist()}


def image(channels, height, width):
    """Bytes that tests/inference/imported/cellpose_test.cpp makes, too."""
    c, y, x = np.indices((channels, height, width))
    return ((y * (3 + c) + x * (5 + 2 * c) + (x * y) // (16 + c)) % 251).astype(np.uint8)


def objects():
    """64 ellipses, most of which touch others, the later over the earlier."""
    y, x = np.indices((190, 200), dtype=np.float64)
    labels = np.zeros(y.shape, np.uint8)
    for number in range(64):
        shift = pattern([4], number).numpy()
        cy, cx = 14 + 23 * (number // 8) + 3 * shift[0], 14 + 24 * (number % 8) + 3 * shift[1]
        ry, rx = 10.5 + 3 * shift[2], 11.5 + 3 * shift[3]
        labels[((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 < 1] = number + 1
    return labels


def labels_of_flows(labels):
    flows = dynamics.masks_to_flows_gpu(labels.astype(np.int32))[0]
    found = {"labels": labels}
    for scale in (0.2, 1.0, 1.5):
        def noisy(field, phase):  # as in make_instances.py
            wave = np.sin(np.arange(field.size) * 0.7 + phase).reshape(field.shape)
            return (field + scale * wave).astype(np.float32)

        masks = dynamics.resize_and_compute_masks(noisy(5 * flows, 0), noisy(np.where(labels > 0, 2.0, -2.0), 1))
        print("objects", scale, masks.max())
        found[f"found_{scale}"] = masks.astype(np.uint8)
    save_file({name: torch.from_numpy(values) for name, values in found.items()}, FOLDER / "cellpose" / "labels.safetensors")


def main():
    logging.disable(logging.WARNING)
    # Positions are resampled to fewer (127 -> 15, 27 -> 15) and to more (7 -> 15).
    for name, changes in (("cpsam_2d", {}), ("cpsam_up_2d", {"window_size": 4})):
        network, options = small(bsize=64, **changes)
        write(name, network, options, [2, 3, 64, 64], "cellpose.vit.CPSAM", mode="eval", run=lambda n, x: n(x)[0])

    (FOLDER / "cellpose").mkdir(exist_ok=True)
    network, _ = small(embed_dim=8, depth=2, global_attn_indexes=[1], out_chans=8)
    fill(network)
    with torch.no_grad():
        network.W2.copy_(torch.eye(192).reshape(192, 3, 8, 8))
        network.out.weight *= 4
    network = network.to(torch.bfloat16)
    file = FOLDER / "cellpose" / "cpsam"
    network.save_model(file)
    model = models.CellposeModel(pretrained_model=str(file), use_bfloat16=False)
    cases = []
    for size in ((1, 100, 130), (2, 250, 257), (4, 300, 260)):
        pixels = image(*size)
        pixels[1:2] = 7 if size[0] == 4 else pixels[1:2]  # an empty channel
        _, flows, _ = model.eval(np.moveaxis(pixels, 0, -1), channel_axis=2, compute_masks=False)
        cases.append({"size": size, "raw": values(np.concatenate([flows[1], flows[2][None]]))})
    labels_of_flows(objects())

    vit.sam_model_registry = sam_model_registry
    with torch.device("meta"):
        full = vit.CPSAM()
    names = {name: list(tensor.shape) for name, tensor in full.state_dict().items()}
    (FOLDER / "cellpose.json").write_text(json.dumps({"cases": cases, "cpsam": names}, separators=(",", ":")) + "\n")


main()
