#!/usr/bin/env python3
"""check_exported_training.py BIN REALDATA [SET ...]: trains exported networks on real images, by BIN/train and by PyTorch, from the same
weights by the same batches, and compares the losses of all steps and the validation's; how far the weights end apart is printed.

pip install torch monai tifffile safetensors. REALDATA: a folder with StarDist's example images (stardist/, BSD-3) and the field of BPAE
cells (bianb/, CC-BY). Losses are relative to the first.
"""
import csv
import itertools
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import tifffile
import torch
from monai.losses import DiceCELoss
from monai.networks import nets
from safetensors.torch import load_file
from torch.export import Dim

warnings.filterwarnings("ignore")
EPOCHS, BATCH, WORD = 25, 4, (1 << 64) - 1
programs, data = map(pathlib.Path, sys.argv[1:3])


def mixed(x):
    """Of splitmix64."""
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def order(count, epoch):
    """The images of an epoch as Cytra shuffles them where the seed is 0."""
    key, numbers = mixed(mixed(mixed(0) ^ epoch)), list(range(count))
    for counter, i in enumerate(range(count, 1, -1), 1):
        other = mixed(key ^ mixed(counter)) % i
        numbers[i - 1], numbers[other] = numbers[other], numbers[i - 1]
    return numbers


def tiles(file, sides, prepare):
    """The first parts of an image."""
    image = prepare(tifffile.imread(data / file).astype(np.float64)).astype(np.float32)
    starts = itertools.product(*(range(0, size - side + 1, side) for size, side in zip(image.shape, sides)))
    return np.stack([image[tuple(slice(a, a + side) for a, side in zip(start, sides))] for start in itertools.islice(starts, 24)])


def normalised(image):
    return (image - image.mean()) / image.std()


def binary(image):
    return image > 0


dice_ce = DiceCELoss(sigmoid=True, smooth_nr=1e-5, smooth_dr=1e-5)
mask = ["experiment=im2im/segmentation", "optimizer=sgd", "optimizer.lr=0.01", "optimizer.momentum=0.9", "optimizer.nesterov=false"]
values = ["experiment=im2im/labelfree", "target_col=seg", "metrics=[mae]", "task.normalize_target=false", "optimizer=adamw", "optimizer.lr=0.001"]
SETS = {  # image, target, how it is prepared, sides, network, loss, the training's configuration
    "nuclei": ("stardist/sd_img2d.tif", "stardist/sd_mask2d.tif", binary, (64, 64),
               lambda: nets.UNet(2, 1, 1, (16, 32, 64), (2, 2), num_res_units=2, norm="batch"), dice_ce, mask),
    "nuclei_3d": ("stardist/sd_img3d.tif", "stardist/sd_mask3d.tif", binary, (12, 20, 16),
                  lambda: nets.DynUNet(3, 1, 1, [3, 3, 3], [1, 2, 2], [2, 2], filters=[8, 16, 32]), dice_ce, mask),
    "stain": ("bianb/BPAE_actin.tif", "bianb/BPAE_nuclei.tif", normalised, (80, 80),
              lambda: nets.SegResNet(2, 8, 1, 1), torch.nn.functional.mse_loss, values),
}  # fmt: skip


def peer(network, images, targets, loss_of, configuration, count):
    """The losses of the steps, the validation's loss."""
    if "optimizer=sgd" in configuration:
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    else:
        optimizer = torch.optim.AdamW(network.parameters(), lr=0.001, weight_decay=0)
    curve = []
    for epoch in range(EPOCHS):
        for batch in torch.tensor(order(count, epoch)).split(BATCH):
            optimizer.zero_grad()
            loss = loss_of(network(images[batch]), targets[batch])
            loss.backward()
            optimizer.step()
            curve.append(loss.item())
    network.eval()
    with torch.no_grad():
        valid = [loss_of(network(images[i : i + 1]), targets[i : i + 1]).item() for i in range(count, len(images))]
    return np.array(curve), sum(valid) / len(valid)


def check(folder, name):
    image, target, prepare, sides, make, loss_of, configuration = SETS[name]
    images, targets = tiles(image, sides, normalised), tiles(target, sides, prepare)
    count = len(images) * 3 // 4
    folder.mkdir()
    for part, numbers in (("train", range(count)), ("valid", range(count, len(images)))):
        (folder / f"{part}.csv").write_text("raw,seg\n" + "".join(f"raw{i}.tif,seg{i}.tif\n" for i in numbers))
        for i in numbers:
            tifffile.imwrite(folder / f"raw{i}.tif", images[i])
            tifffile.imwrite(folder / f"seg{i}.tif", targets[i])
    torch.manual_seed(1)
    network = make().train()
    start = {key: value.clone() for key, value in network.state_dict().items()}
    any_image = {0: Dim.AUTO} | {d + 2: Dim.AUTO for d in range(len(sides))}
    torch.export.save(torch.export.export(network, (torch.randn(2, 1, *sides),), dynamic_shapes=(any_image,)), folder / "net.pt2")
    load = f"[{{_target_: LoadImaged, keys: [raw, seg], spatial_dims: {len(sides)}}}]"
    is_equal = True
    for precision, dtype, most in (("64-true", torch.float64, 1e-6), ("32", torch.float32, 1e-3)):
        run = folder / precision
        done = subprocess.run(
            [programs / "train", *configuration, "model=exported", f"model.file={folder}/net.pt2", f"data.path={folder}", "seed=0",
             f"spatial_dims={len(sides)}", f"patch_shape={list(sides)}", f"data.transforms.train={load}", f"data.transforms.valid={load}",
             f"data.batch_size={BATCH}", "scheduler=constant", "optimizer.weight_decay=0", f"trainer.max_epochs={EPOCHS}",
             "trainer.steps_per_epoch=null", f"trainer.check_val_every_n_epoch={EPOCHS}", "trainer.log_every_n_steps=1",
             f"trainer.precision={precision}", "trainer.accelerator=cpu", "logger=csv", "callbacks.saving=null", f"paths.output_dir={run}"],
            capture_output=True, text=True, timeout=1800)  # fmt: skip
        if done.returncode:
            sys.exit(done.stderr)
        rows = list(csv.DictReader(open(next(run.rglob("metrics.csv")))))
        own = np.array([float(row["train/loss_step"]) for row in rows if row.get("train/loss_step")])
        own_valid = [float(row["val/loss"]) for row in rows if row.get("val/loss")][-1]
        own_weights = load_file(run / "checkpoints/last.ckpt")
        network.load_state_dict(start)
        network.to(dtype).train()
        tensors = (torch.from_numpy(part).unsqueeze(1).to(dtype) for part in (images, targets))
        curve, valid = peer(network, *tensors, loss_of, configuration, count)
        weights = {key: value for key, value in network.state_dict().items() if "model." + key in own_weights}
        if not weights or len(weights) != len({tensor.data_ptr() for tensor in network.state_dict().values()}):
            sys.exit(f"{name}: {len(weights)} tensors are in the checkpoint")  # modules share tensors: they have one name
        moved = max((own_weights["model." + key].double() - value.double()).abs().max().item() for key, value in weights.items())
        off, off_valid = abs(own - curve).max() / curve[0], abs(own_valid - valid) / curve[0]
        print(f"{name}, {precision}: {len(images)} images, {len(curve)} steps, loss {curve[0]:.4f} -> {curve[-1]:.4f}; losses differ by "
              f"{off:.1e}, the validation's by {off_valid:.1e}, weights by {moved:.1e}", flush=True)
        is_equal = is_equal and off <= most and off_valid <= most
    return is_equal


with tempfile.TemporaryDirectory() as scratch:
    sys.exit(not all([check(pathlib.Path(scratch) / name, name) for name in sys.argv[3:] or SETS]))
