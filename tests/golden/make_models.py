#!/usr/bin/env python3
"""Writes tests/golden/models: TorchScript as users have it, a MONAI bundle, and expected.safetensors with what they compute.

    python tests/golden/make_models.py      (needs benchmarks/requirements.txt)

expected.safetensors: tensors "FILE/in" and "FILE/out0", "FILE/out1", ... of FILE(in); "tta/NAME" averages of traced.pt
for "tta/in".
"""
import functools
import itertools
import warnings
from pathlib import Path
from typing import Dict, Tuple

import monai
import torch
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
        self.conv = torch.nn.Conv2d(1, 2, 1)
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
    (folder / "cut.pt").write_bytes((folder / "traced.pt").read_bytes()[:9000])
    path = folder / "expected.safetensors"
    save_file(expected, path, {"torch": torch.__version__, "monai": monai.__version__})
    sort_metadata(path)


if __name__ == "__main__":
    main()
