#!/usr/bin/env python3
"""Writes windows_*.safetensors: what MONAI's sliding windows make of small images, and the tiling of nnU-Net and Cellpose.

    python tests/golden/make_sliding_window.py [--output FOLDER]      (needs benchmarks/requirements.txt)

Every case has the options of inference_args, "model" (the outputs of the predictor, see model()), and the tensors: input,
output_0, output_1, ..., and weights (a map of a window's weights). In windows_spacing there are also cases of "starts" alone.
"""
import argparse
import math
from pathlib import Path

import make_golden
import numpy as np
import torch
import torch.nn.functional as F
from make_golden import Golden, position_predictor
from monai.data.utils import compute_importance_map
from monai.inferers import SliceInferer, SlidingWindowInferer


def model(outputs):
    """full: (x * ramp, x + 1); half, double: its first channel at another resolution; wide: three channels."""

    def run(x):
        full = position_predictor(x)
        ramp = full[:, : x.shape[1]]
        make = {
            "full": lambda: full,
            "half": lambda: getattr(F, f"avg_pool{x.ndim - 2}d")(ramp, 2),
            "double": lambda: F.interpolate(ramp, scale_factor=2, mode="nearest"),
            "wide": lambda: torch.cat([ramp, ramp - 1, ramp * 2], 1),
        }
        return [make[name]() for name in outputs]

    return run


def infer(image, options, outputs, weights=None):
    """Each output by MONAI; one by one where MONAI fails on several."""
    options = dict(options)
    kind = SlidingWindowInferer
    if "spatial_dim" in options:
        kind = SliceInferer
    inferer = kind(**options)
    network = model(outputs)
    more = {} if weights is None else {"roi_weight_map": weights}
    if weights is not None:
        inferer.roi_weight_map = weights
    full_first = outputs[0] in ("full", "wide") or len(outputs) == 1
    low_in_front = any(o in ("half", "double") for o in outputs[:-1])
    if full_first and not low_in_front:
        made = inferer(image, lambda x: tuple(network(x)))
        made = [made] if isinstance(made, torch.Tensor) else list(made)
        keyed = kind(**options)
        if weights is None and len(outputs) > 1:  # a dictionary gives the same
            again = keyed(image, lambda x: {f"{i}": y for i, y in enumerate(network(x))})
            assert all(torch.equal(a, b) for a, b in zip(made, again.values()))
        return made
    return [infer(image, options, [name], weights)[0] for name in outputs]


def add(g, name, image, options, outputs=("full",), weights=None):
    outputs = list(outputs)
    made = infer(g.tensors[image], options, outputs, weights)
    tensors = {"input": image} | {f"output_{i}": y for i, y in enumerate(made)}
    if weights is not None:
        tensors["weights"] = weights
    g.add(name, options, tensors, model=outputs)


def plain(roi, overlap, batch, mode="gaussian", **more):
    return {"roi_size": roi, "overlap": overlap, "sw_batch_size": batch, "mode": mode} | more


def lines_and_images():
    g = Golden("windows_2d")
    line = g.put("line", torch.rand(2, 1, 17))
    flat = g.put("flat", torch.rand(1, 1, 13, 9))
    pair = g.put("pair", torch.rand(2, 1, 7, 8))
    two = g.put("two", torch.rand(1, 2, 7, 5))
    for mode in ("constant", "gaussian"):
        for roi, overlap, batch in (([5], 0.25, 4), ([6], 0.5, 1), ([17], 0.5, 2), ([4], 0.0, 3), ([5], 0.8, 64), ([1], 0.5, 5)):
            add(g, f"1d_{mode}_{roi[0]}_{overlap}_{batch}", line, plain(roi, overlap, batch, mode))
        for pad in ("constant", "reflect", "replicate", "circular"):
            add(g, f"1d_{mode}_padded_{pad}", line, plain([24], 0.5, 2, mode, padding_mode=pad))
        for roi, overlap, batch in (
            ([4, 4], 0.0, 1),
            ([5, 4], 0.25, 2),
            ([5, 3], 0.5, 3),
            ([6, 5], [0.6, 0.3], 4),
            ([4, 9], 0.9, 5),
            ([13, 1], 0.4, 100),
            ([-1, 4], 0.5, 2),
            ([0, 0], 0.5, 2),
        ):
            add(g, f"2d_{mode}_{roi}_{overlap}_{batch}".replace(" ", ""), flat, plain(roi, overlap, batch, mode))
        for pad, roi in (("constant", [12, 11]), ("reflect", [10, 13]), ("replicate", [16, 9]), ("circular", [12, 12])):
            more = {"cval": -0.5} if pad == "constant" else {}
            add(g, f"2d_{mode}_padded_{pad}", pair, plain(roi, 0.25, 3, mode, padding_mode=pad, **more))
            add(g, f"2d_{mode}_padded_one_axis_{pad}", pair, plain([9, 4], 0.5, 3, mode, padding_mode=pad))
        add(g, f"2d_{mode}_two_channels", two, plain([4, 4], 0.5, 2, mode))
        add(g, f"2d_{mode}_batch_across_images", pair, plain([4, 4], 0.25, 5, mode))
        add(g, f"2d_{mode}_buffered", flat, plain([5, 4], 0.25, 2, mode, buffer_steps=2))
        add(g, f"2d_{mode}_buffered_rows", pair, plain([4, 4], 0.5, 2, mode, buffer_steps=1, buffer_dim=0))
    for sigma in (0.05, 0.3, 1.0, [0.1, 0.4]):
        add(g, f"2d_sigma_{sigma}".replace(" ", ""), flat, plain([6, 6], 0.5, 4, sigma_scale=sigma))
    return g


def volumes():
    g = Golden("windows_3d")
    cube = g.put("cube", torch.rand(1, 1, 7, 6, 5))
    pair = g.put("pair", torch.rand(2, 1, 4, 5, 4))
    for mode in ("constant", "gaussian"):
        for roi, overlap, batch in (
            ([3, 4, 3], 0.25, 1),
            ([3, 3, 4], 0.5, 4),
            ([4, 4, 4], [0.0, 0.5, 0.7], 3),
            ([7, 2, 5], 0.5, 2),
            ([1, 6, 5], 0.25, 4),
            ([-1, 3, 0], 0.25, 2),
            ([2, 2, 2], 0.0, 7),
            ([4, 3, 2], 0.75, 9),
        ):
            add(g, f"{mode}_{roi}_{overlap}_{batch}".replace(" ", ""), cube, plain(roi, overlap, batch, mode))
        for pad in ("constant", "reflect", "replicate", "circular"):
            more = {"cval": 2.0} if pad == "constant" else {}
            add(g, f"{mode}_padded_{pad}", pair, plain([7, 6, 3], 0.5, 2, mode, padding_mode=pad, **more))
            add(g, f"{mode}_padded_inside_{pad}", pair, plain([3, 3, 6], 0.5, 3, mode, padding_mode=pad))
        add(g, f"{mode}_across_images", pair, plain([3, 3, 3], 0.25, 5, mode))
        add(g, f"{mode}_buffered", cube, plain([3, 3, 3], 0.25, 2, mode, buffer_steps=2, buffer_dim=0))
    add(g, "sigma_per_axis", cube, plain([5, 4, 4], 0.5, 2, sigma_scale=[0.1, 0.2, 0.4]))
    return g


def outputs():
    g = Golden("windows_outputs")
    flat = g.put("flat", torch.rand(1, 1, 12, 10))
    small = g.put("small", torch.rand(1, 1, 5, 6))
    pair = g.put("pair", torch.rand(2, 1, 8, 6))
    cube = g.put("cube", torch.rand(1, 1, 6, 8, 4))
    stack = g.put("stack", torch.rand(1, 1, 3, 6, 5))
    for mode in ("constant", "gaussian"):
        for made in (["full", "half"], ["half", "full"], ["double"], ["half"], ["wide", "full"], ["half", "wide", "half"]):
            name = f"{mode}_{'_'.join(made)}"
            add(g, f"2d_{name}", flat, plain([4, 4], 0.5, 3, mode), made)
        add(g, f"2d_{mode}_half_first_of_two_images", pair, plain([4, 4], 0.25, 4, mode), ["half", "full"])
        add(g, f"2d_{mode}_padded_half", small, plain([8, 8], 0.25, 4, mode), ["half", "full"])
        add(g, f"2d_{mode}_padded_double", small, plain([8, 4], 0.25, 4, mode), ["full", "double"])
        add(g, f"3d_{mode}_full_half", cube, plain([4, 4, 4], 0.5, 2, mode), ["full", "half"])
        add(g, f"3d_{mode}_half_full", cube, plain([4, 4, 4], 0.25, 2, mode), ["half", "full"])
        for dim, roi in ((0, [4, 4]), (1, [2, 3]), (2, [3, -1])):
            add(g, f"slices_{mode}_{dim}", stack, plain(roi, 0.5, 2, mode, spatial_dim=dim))
        add(g, f"slices_{mode}_padded", stack, plain([8, 4], 0.25, 3, mode, spatial_dim=0))
        add(g, f"slices_{mode}_two_outputs", stack, plain([4, 4], 0.25, 3, mode, spatial_dim=0), ["full", "wide"])
        add(g, f"odd_overlap_{mode}_half", flat, plain([4, 6], [0.25, 0.4], 2, mode), ["full", "half"])
    for image, roi in ((flat, [5, 4]), (cube, [3, 4, 2]), (pair, [8, 4])):
        add(g, f"weights_{image}", image, plain(roi, 0.5, 2, "constant"), weights=torch.rand(*roi) + 0.1)
    add(g, "weights_half", flat, plain([4, 4], 0.5, 2, "constant"), ["full", "half"], weights=torch.rand(4, 4) + 0.1)
    return g


def even_starts(size, roi, overlap):
    """nnU-Net: compute_steps_for_sliding_window(image_size, tile_size, tile_step_size) with step = 1 - overlap."""
    steps = int(np.ceil((size - roi) / (roi * (1 - overlap)))) + 1
    actual = (size - roi) / (steps - 1) if steps > 1 else 99999999999
    return [int(np.round(actual * i)) for i in range(steps)]


def cellpose_starts(size, roi, overlap):
    """Cellpose: make_tiles(..., augment=False)."""
    overlap = min(0.5, max(0.05, overlap))
    roi = min(roi, size)
    count = 1 if size <= roi else int(np.ceil((1.0 + 2 * overlap) * size / roi))
    return np.linspace(0, size - roi, count).astype(int).tolist()


def taper(ly, lx, sig=7.5):
    """Cellpose: _taper_mask."""
    bsize = max(224, max(ly, lx))
    xm = np.abs(np.arange(bsize) - np.arange(bsize).mean())
    mask = 1 / (1 + np.exp((xm - (bsize / 2 - 20)) / sig))
    mask = mask * mask[:, np.newaxis]
    y, x = bsize // 2 - ly // 2, bsize // 2 - lx // 2
    return mask[y : y + ly, x : x + lx]


def border(size, roi, div=16):
    """Cellpose: get_pad_yx(..., min_size=roi) of one side: in front, behind."""
    pad = int(div * np.ceil(size / div) - size) if size >= roi else max(0, roi - size - div)
    return div // 2 + pad // 2, div // 2 + pad - pad // 2


def stitch(image, roi, starts, weights):
    total = torch.zeros(1, 2, *image.shape[2:], dtype=torch.float64)
    count = torch.zeros(image.shape[2:], dtype=torch.float64)
    for place in np.ndindex(*map(len, starts)):
        box = tuple(slice(s[i], s[i] + r) for s, i, r in zip(starts, place, roi))
        total[(..., *box)] += position_predictor(image[(..., *box)])[0] * weights
        count[box] += weights
    return (total / count).float()


def spacing():
    g = Golden("windows_spacing")
    line = g.put("placeholder", torch.zeros(1))
    starts = {"even": even_starts, "cellpose": cellpose_starts}
    for kind, place in starts.items():
        cases = [
            {"size": size, "roi": roi, "overlap": overlap, "starts": place(size, roi, overlap)}
            for size in (16, 17, 100, 109)
            for roi in (1, 7, 16)
            for overlap in (0.0, 0.25, 0.5, 0.75)
            if roi <= size
        ]
        g.add(f"starts_{kind}", {}, {"input": line}, starts=cases)
    flat, cube = g.put("flat", torch.rand(1, 1, 15, 12)), g.put("cube", torch.rand(1, 1, 7, 6, 5))
    wide = g.put("wide", torch.rand(1, 1, 36, 18))
    even, cellpose = ((flat, [6, 5]), (flat, [15, 4]), (cube, [4, 5, 3])), ((wide, [32, 33]), (wide, [72, 40]))
    for kind, (key, roi) in [*(("even", one) for one in even), *(("cellpose", one) for one in cellpose)]:
        for overlap in (0.25, 0.5):
            image, sides = g.tensors[key], g.tensors[key].shape[2:]
            pads = [border(s, r) if kind == "cellpose" else (0, 0) for s, r in zip(sides, roi)]
            inside = (..., *(slice(p[0], p[0] + s) for p, s in zip(pads, sides)))
            image = F.pad(image, [w for p in reversed(pads) for w in p])
            placed = [starts[kind](s, r, overlap) for s, r in zip(image.shape[2:], roi)]
            for mode in ("constant", "gaussian" if kind == "even" else "cellpose"):
                weights = torch.from_numpy(taper(*roi)) if mode == "cellpose" else compute_importance_map(tuple(roi), mode)
                made = stitch(image, roi, placed, weights.double())[inside]
                name = f"{kind}_{len(roi)}d_{roi}_{overlap}_{mode}".replace(" ", "")
                g.add(name, plain(roi, overlap, 3, mode, spacing=kind), {"input": key, "output_0": made}, model=["full"])
    return g


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().output
    torch.manual_seed(15)
    total = 0
    for make in (lines_and_images, volumes, outputs, spacing):
        golden = make()
        total += len(golden.cases)
        golden.save(folder)
    print(total, "cases")


if __name__ == "__main__":
    main()
