#!/usr/bin/env python3
"""Writes tests/golden/models: TorchScript as users have it, a MONAI bundle, and expected.safetensors with what they compute.

    python tests/golden/make_models.py      (needs benchmarks/requirements.txt)

expected.safetensors: tensors "FILE/in" and "FILE/out0", "FILE/out1", ... of FILE(in); "tta/NAME" averages of traced.pt
for "tta/in".
"""
import functools
import itertools
import json
import warnings
from pathlib import Path
from typing import Dict, Tuple

import monai
import nibabel
import numpy as np
import torch
import monai.bundle
from monai.networks.nets import UNet
from safetensors.torch import save_file
from torch import Tensor

from make_golden import sort_metadata

folder = Path(__file__).parent / "models"
expected = {}


class ControlFlow(torch.nn.Module):
    """Branches and loops on the values, in 3D, with two outputs, the second at half the resolution."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv3d(2, 4, 3, padding=1)
        self.second = torch.nn.Conv3d(4, 3, 1)

    def forward(self, x: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
        y = self.first(x)
        if bool(y.mean() > 0):
            y = torch.relu(y)
        else:
            y = torch.sigmoid(y)
        for _ in range(int(y.shape[0])):
            y = y + 1.0
        return self.second(y), {"half": torch.nn.functional.max_pool3d(y, 2)}


class OneSize(torch.nn.Module):
    """As a vision transformer: it knows the position of each of 64x64 pixels."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 1, 1)
        self.position = torch.nn.Parameter(torch.rand(1, 1, 64, 1))

    def forward(self, x):
        return self.conv(x) + self.position.expand(1, 1, 64, 64)


class TwoInputs(torch.nn.Module):
    def forward(self, image: Tensor, coordinates: Tensor):
        return image + coordinates


class Saving(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 1, 1)

    def forward(self, x: Tensor):
        torch.save(x, "cytra_was_here")
        return self.conv(x)


def outputs_of(value):
    if isinstance(value, Tensor):
        return [value]
    return [one for part in (value.values() if isinstance(value, dict) else value) for one in outputs_of(part)]


def save(name, module, image=None):
    torch.jit.save(module, folder / name)
    if image is None:
        return
    with torch.inference_mode():
        outputs = outputs_of(module(image))
    expected[f"{name}/in"] = image
    for i, output in enumerate(outputs):
        expected[f"{name}/out{i}"] = output.contiguous()


def test_time_augmentation(net):
    """Plain means over lists of predictions, as nnU-Net's and MONAI's documentation has them."""
    image = torch.rand(1, 2, 12, 16)
    resize = functools.partial(torch.nn.functional.interpolate, mode="bilinear", align_corners=False)

    def flips(predict, axes):
        subsets = [dims for n in range(len(axes) + 1) for dims in itertools.combinations(axes, n)]
        return torch.stack([torch.flip(predict(torch.flip(image, dims)), dims) for dims in subsets]).mean(0)

    def turned(k, dims=()):
        y = net(torch.rot90(torch.flip(image, dims), k, (2, 3)))
        return torch.flip(torch.rot90(y, -k, (2, 3)), dims)

    sizes = {0.75: (8, 12), 1.0: (12, 16), 1.5: (20, 24)}  # multiples of 4 next to the factor's
    with torch.inference_mode():
        expected["tta/in"] = image
        expected["tta/mirror"] = flips(net, (2, 3))
        expected["tta/mirror_last"] = flips(net, (3,))
        expected["tta/rotate90"] = torch.stack([turned(k) for k in range(4)]).mean(0)
        expected["tta/all_turns"] = torch.stack([turned(k, dims) for k in range(4) for dims in ((), (2,))]).mean(0)
        expected["tta/scales"] = torch.stack([resize(net(resize(image, size)), (12, 16)) for size in sizes.values()]).mean(0)
        expected["tta/softmax"] = flips(lambda x: net(x).softmax(1), (2, 3))
        expected["tta/sigmoid"] = flips(lambda x: net(x).sigmoid(), (2, 3))


def bundle(path):
    """A MONAI bundle and an oblique NIfTI file; its logits are "bundle/logits" (K,Z,Y,X)."""
    config = {
        "imports": ["$import torch"],
        "bundle_root": ".",
        "device": "$torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')",
        "image_key": "image",
        "patch": [8, 12, 4],
        "network_def": {"_target_": "UNet", "spatial_dims": 3, "in_channels": 1, "out_channels": 2, "channels": [2, 4],
                        "strides": [2], "kernel_size": [3, 3, 3], "up_kernel_size": 3, "norm": "BATCH"},
        "network": "$@network_def.to(@device)",
        "preprocessing": {"_target_": "Compose", "transforms": [
            {"_target_": "LoadImaged", "keys": "@image_key"},
            {"_target_": "EnsureChannelFirstd", "keys": "@image_key"},
            {"_target_": "Orientationd", "keys": "@image_key", "axcodes": "RAS"},
            {"_target_": "SpatialPadd", "keys": "@image_key", "spatial_size": [20, 12, 4]},
            {"_target_": "ScaleIntensityRanged", "keys": "@image_key", "a_min": 0, "a_max": 100, "b_min": 0, "b_max": 1,
             "clip": True},
            {"_target_": "NormalizeIntensityd", "_disabled_": True, "keys": "@image_key"},
            {"_target_": "EnsureTyped", "keys": "@image_key"}]},
        "inferer": {"_target_": "SlidingWindowInferer", "roi_size": "@patch", "sw_batch_size": 2, "overlap": 0.5,
                    "mode": "gaussian"},
        "postprocessing": {"_target_": "Compose", "transforms": [
            {"_target_": "Activationsd", "keys": "pred", "softmax": True},
            {"_target_": "AsDiscreted", "keys": "pred", "argmax": True}]},
    }
    metadata = {"version": "0.1.0", "network_data_format": {
        "inputs": {"image": {"type": "image", "num_channels": 1, "spatial_shape": ["2*n", "2*n", "2*n"], "dtype": "float32"}},
        "outputs": {"pred": {"type": "image", "format": "segmentation", "num_channels": 2, "dtype": "float32"}}}}
    for name in ("configs", "models"):
        (path / name).mkdir(parents=True, exist_ok=True)
    (path / "configs/metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")
    (path / "configs/inference.json").write_text(json.dumps(config, indent=2) + "\n")
    parser = monai.bundle.ConfigParser(config | {"device": "cpu"})
    net = parser.get_parsed_content("network_def").eval()
    torch.jit.save(torch.jit.trace(net, torch.rand(1, 1, 8, 8, 8)), path / "models/model.ts")
    array = np.random.default_rng(0).integers(0, 120, (18, 14, 6)).astype("u1")
    affine = np.array([[0, -1.5, 0, 3], [1.0, 0, 0, -7], [0, 0, -2.5, 9], [0, 0, 0, 1]])  # axes A, L, I
    nibabel.save(nibabel.Nifti1Image(array, affine), folder / "image.nii.gz")
    sample = parser.get_parsed_content("preprocessing")({"image": str(folder / "image.nii.gz")})
    with torch.inference_mode():
        logits = parser.get_parsed_content("inferer")(sample["image"].as_tensor()[None], net)[0]
    expected["bundle/logits"] = logits.permute(0, 3, 2, 1).contiguous()


def main():
    folder.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    net = UNet(2, 2, 3, channels=(4, 8, 12), strides=(2, 2), norm=("instance", {"affine": True})).eval()
    image = torch.rand(2, 2, 8, 12)
    save("traced.pt", torch.jit.trace(net, image), torch.rand(1, 2, 20, 16))
    save("frozen.pt", torch.jit.freeze(torch.jit.trace(net, image)), torch.rand(1, 2, 20, 16))
    save("control flow.pt", torch.jit.script(ControlFlow()), torch.rand(2, 2, 4, 6, 8))
    save("one_size.pt", torch.jit.script(OneSize()), torch.rand(1, 1, 64, 64))
    save("two_inputs.pt", torch.jit.script(TwoInputs()))
    save("saving.pt", torch.jit.script(Saving()))
    test_time_augmentation(net)
    bundle(folder / "a bundle")
    (folder / "cut.pt").write_bytes((folder / "traced.pt").read_bytes()[:9000])
    path = folder / "expected.safetensors"
    save_file(expected, path, {"torch": torch.__version__, "monai": monai.__version__})
    sort_metadata(path)


if __name__ == "__main__":
    main()
